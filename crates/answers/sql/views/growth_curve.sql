-- Growth curves: cost of a call by the number of earlier calls, with the fitted law.
--
-- One row per point; `verdict`, `model` and the exponent belong to the whole curve (table growth).
-- Columns:
-- process: Image name.
-- operation: Operation that is called.
-- predictor: calls or size_bytes.
-- n: Middle of the range of calls that the point represents.
-- calls: Number of calls.
-- cost_ns: Typical cost of one call.
-- fit_ns: Cost according to the law.
-- verdict: Verdict on the curve.
-- model: Law by which the cost of one call grows.
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
