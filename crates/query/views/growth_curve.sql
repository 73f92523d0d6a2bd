-- Growth curves: cost of a call against the number of earlier calls, with the fitted law.
--
-- One row per point; `verdict`, `model` and the exponent are those of the whole curve (table growth).
-- Columns:
-- process: Image name.
-- operation: What is called.
-- predictor: calls or size_bytes.
-- n: Middle of the calls that the point stands for.
-- calls: How many.
-- cost_ns: Typical cost of one.
-- fit_ns: Cost by the law.
-- verdict: What the curve says.
-- model: Law by which one call grows.
-- exponent: Exponent of the growing part.
SELECT g.name AS process,
       g.operation AS operation,
       g.predictor AS predictor,
       p.n_mid AS n,
       p.calls AS calls,
       p.cost_ns AS cost_ns,
       p.fit_ns AS fit_ns,
       g.verdict AS verdict,
       g.model AS model,
       g.exponent AS exponent
FROM growth g
JOIN growth_point p ON p.growth_id = g.growth_id
