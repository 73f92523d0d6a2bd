-- Waiting and ready time by process, wait reason and stack.
--
-- What threads waited for, and how long they were in the run queue before they ran.
-- Columns:
-- process: Image name.
-- wait_reason: Wait reason (`KWAIT_REASON`); null for threads that were preempted.
-- stack_id: Stack on which they were switched in (tables stack and stack_frame).
-- leaf: Innermost frame of that stack.
-- count: Context switches.
-- wait_ns: Sum of all waits.
-- wait_union_ns: Time in which at least one of the threads waited.
-- ready_ns: Sum of all times in the run queue.
-- ready_union_ns: Time in which at least one of the threads was in the run queue.
-- wait_max_ns: Longest wait.
SELECT p.name AS process,
       w.wait_reason AS wait_reason,
       w.stack_id AS stack_id,
       s.leaf AS leaf,
       w.count AS count,
       w.wait_sum_ns AS wait_ns,
       w.wait_union_ns AS wait_union_ns,
       w.ready_sum_ns AS ready_ns,
       w.ready_union_ns AS ready_union_ns,
       w.wait_max_ns AS wait_max_ns
FROM wait_cost w
LEFT JOIN process p ON p.upid = w.upid
LEFT JOIN stack s ON s.stack_id = w.stack_id
