-- Who made whom wait: waiting time by the one who ended it.
--
-- A wait ends when somebody readies the thread; that one had what the thread waited for.
-- Columns:
-- waiting: Image name of the process that waited.
-- readied_by: What ended the wait: a thread, a DPC, …
-- readying: Image name of the process that ended it.
-- service: Service that ended it.
-- driver: Driver that ended it.
-- wait_reason: Why it waited.
-- count: Waits.
-- wait_ns: Their sum.
-- wait_union_ns: Time in which at least one thread waited so.
-- ready_ns: Time in the queue afterwards.
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
