-- Who made whom wait: wait time by the thread that ended the wait.
--
-- A wait ends when another thread readies the waiting one; usually it held what the waiting thread needed.
-- Columns:
-- waiting: Image name of the process that waited.
-- readied_by: What ended the wait: a thread, a DPC, …
-- readying: Image name of the process that ended it.
-- service: Service that ended it.
-- driver: Driver that ended it.
-- wait_reason: Wait reason.
-- count: Number of waits.
-- wait_ns: Sum of the waits.
-- wait_union_ns: Time in which at least one thread waited this way.
-- ready_ns: Time in the run queue afterwards.
SELECT w.name AS waiting,
       c.readied_by AS readied_by,
       r.name AS readying,
       c.readying_service AS service,
       c.readying_driver AS driver,
       c.wait_reason AS wait_reason,
       sum(c.count) AS count,
       sum(c.wait_sum_ns) AS wait_ns,
       sum(c.wait_union_ns) AS wait_union_ns,
       sum(c.ready_ns) AS ready_ns
FROM wait_chain c
LEFT JOIN process w ON w.upid = c.waiting_upid
LEFT JOIN process r ON r.upid = c.readying_upid
GROUP BY w.name, c.readied_by, r.name, c.readying_service, c.readying_driver, c.wait_reason
