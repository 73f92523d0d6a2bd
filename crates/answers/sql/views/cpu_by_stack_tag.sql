-- CPU time by stack tag: what kind of work used it.
--
-- Each stack has at most one tag, so the times add up to all sampled time; time without a tag has a null tag.
-- DPCs and ISRs are charged by the tag of the whole stack on which they were sampled, including that of the interrupted thread;
-- `etwhy tree --by tag` uses only their own part of the stack.
-- Columns:
-- tag: Path of the stack tag, from general to specific, joined by backslashes.
-- class: thread, dpc or isr.
-- cpu_ns: CPU time.
-- samples: Samples.
SELECT s.tag AS tag,
       c.class AS class,
       sum(c.weight_ns) AS cpu_ns,
       sum(c.samples) AS samples
FROM stack_cost c
LEFT JOIN stack s ON s.stack_id = c.stack_id
GROUP BY s.tag, c.class
