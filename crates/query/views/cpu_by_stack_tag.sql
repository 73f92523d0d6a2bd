-- CPU time by stack tag: what the time went to.
--
-- Each stack has one tag at most, so the times add up to all sampled time; what has no tag stands under null.
-- DPCs and ISRs are charged by the tag of the whole stack on which they were seen, that of the thread they interrupted among it;
-- `etwhy tree --by tag` goes by their own part of the stack.
-- Columns:
-- tag: Path of the stack tag, from the general to the special, joined by backslashes.
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
