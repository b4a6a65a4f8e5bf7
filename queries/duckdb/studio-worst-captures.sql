-- Which captures should I open first?
--
-- A developer of a studio asks this. Captures that could not be read whole are listed too: what
-- they lack is not known, so they may be worse than they look.
--
-- Columns, the worst first, 20 at most:
--   capture             its name, for `ackscope overview`
--   build               label of the manifest
--   state               ok, or why the capture was not read whole
--   flows               its flows; 0 where it could not be read
--   flows_with_errors   flows with a finding of severity error
--   flows_with_warnings flows with a finding of severity warn
--   flows_unexplained   flows that no protocol explains: their findings are not known
--   loss_most           highest share of packets that a side lost on the path; NULL if not known
--   rtt_p95_ms_most     highest 95 % round trip of a side; NULL if not known
--   frame               where the gravest finding begins; NULL without findings
--   rule                the rule of that finding
--   message             what ackscope says there
--
-- Run it beside the folder tables that `ackscope batch -o tables --manifest …` wrote:
--   duckdb -f studio-worst-captures.sql
-- For a folder elsewhere, change the paths below; in an object store, to read_parquet('s3://…').
WITH
captures AS (
  SELECT capture, build, state
  FROM read_parquet('tables/captures.parquet', hive_partitioning = false)
),
flows AS (
  SELECT file, errors, warnings, path_loss_a, path_loss_b, rtt_p95_ms_a, rtt_p95_ms_b
  FROM read_parquet('tables/flows/**/*.parquet', hive_partitioning = false)
),
findings AS (
  SELECT file, flow, frame, rule, side, severity, message
  FROM read_parquet('tables/findings/**/*.parquet', hive_partitioning = false)
),
sums AS (
  SELECT file, count(*) AS flows,
    count(*) FILTER (WHERE errors > 0) AS flows_with_errors,
    count(*) FILTER (WHERE warnings > 0) AS flows_with_warnings,
    count(*) - count(errors) AS flows_unexplained,
    -- max passes over NULL, so one known side suffices
    max(path_loss_a) AS loss_a, max(path_loss_b) AS loss_b,
    max(rtt_p95_ms_a) AS rtt_a, max(rtt_p95_ms_b) AS rtt_b
  FROM flows
  GROUP BY file
),
ranked AS (
  SELECT file, frame, rule, message,
    row_number() OVER (
      PARTITION BY file
      ORDER BY CASE severity WHEN 'error' THEN 1 WHEN 'warn' THEN 2 ELSE 3 END, frame, flow, rule, side, message
    ) AS place
  FROM findings
)
SELECT c.capture AS capture, c.build AS build, c.state AS state,
  coalesce(s.flows, 0) AS flows, coalesce(s.flows_with_errors, 0) AS flows_with_errors,
  coalesce(s.flows_with_warnings, 0) AS flows_with_warnings,
  coalesce(s.flows_unexplained, 0) AS flows_unexplained,
  greatest(coalesce(s.loss_a, s.loss_b), coalesce(s.loss_b, s.loss_a)) AS loss_most,
  greatest(coalesce(s.rtt_a, s.rtt_b), coalesce(s.rtt_b, s.rtt_a)) AS rtt_p95_ms_most,
  r.frame AS frame, r.rule AS rule, r.message AS message
FROM captures AS c
LEFT JOIN sums AS s ON s.file = c.capture
LEFT JOIN (SELECT file, frame, rule, message FROM ranked WHERE place = 1) AS r ON r.file = c.capture
ORDER BY flows_with_errors DESC, flows_with_warnings DESC, loss_most DESC NULLS LAST, capture
LIMIT 20;
