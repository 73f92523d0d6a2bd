-- Frameworks that run the DPCs and ISRs of other drivers, and the samples that could tell for whom.
--
-- Modules of Windows whose routines call the drivers of several devices. Only stacks of samples say which of these ran: without any, or with few, a
-- framework is not the one to name. The ISR of a USB controller is its driver's own.
-- Columns:
-- class: `dpc` or `isr`.
-- host: The framework, in lower case.
-- samples: Samples with a stack in its DPCs or ISRs.
-- long_samples: Of these, samples in those above Microsoft's limit (100 µs for a DPC, 25 µs for an ISR).
-- severe_samples: Samples in the one DPC or ISR with most of them.
WITH hosts AS (
  SELECT c.class AS class, lower(c.module) AS host
  FROM interrupt_cost c
  WHERE c.level = 'module'
    AND lower(c.module) IN ('ataport.sys', 'fltmgr.sys', 'fwpkclnt.sys', 'hidclass.sys', 'ks.sys', 'ndis.sys', 'netio.sys', 'ntoskrnl.exe', 'portcls.sys', 'scsiport.sys',
                            'storport.sys', 'tcpip.sys', 'usbport.sys', 'usbxhci.sys', 'wdf01000.sys')
    AND NOT (c.class = 'isr' AND lower(c.module) = 'usbxhci.sys')
  GROUP BY c.class, lower(c.module)
), each AS (
  SELECT s.class AS class, lower(s.module) AS host, s.cpu AS cpu, s.start_ns AS start_ns, count(*) AS samples,
         sum(CASE WHEN s.exclusive_ns > CASE WHEN s.class = 'dpc' THEN 100000 ELSE 25000 END THEN 1 ELSE 0 END) AS long_samples
  FROM interrupt_sample s
  JOIN stack k ON k.stack_id = s.stack_id
  WHERE CASE WHEN k.leaf_only THEN 1 ELSE 0 END = 0
  GROUP BY s.class, lower(s.module), s.cpu, s.start_ns
)
SELECT h.class AS class, h.host AS host, coalesce(sum(e.samples), 0) AS samples, coalesce(sum(e.long_samples), 0) AS long_samples, coalesce(max(e.samples), 0) AS severe_samples
FROM hosts h
LEFT JOIN each e ON e.class = h.class AND e.host = h.host
GROUP BY h.class, h.host
