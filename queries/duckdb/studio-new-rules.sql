-- Which rules does the new build break that the old one never did, and where can I see it?
--
-- A studio asks this of each build. It edits the two builds in `compared`.
-- A rule counts as new only if the old build has flows of its protocol. Without such flows it is
-- not known whether the old build broke the rule.
--
-- Columns, the gravest first:
--   severity      note, warn or error
--   protocol      none for flows that no protocol explains
--   rule          see `ackscope explain RULE`
--   with_after    flows of the new build that have the rule
--   flows_after   flows of the new build and the protocol
--   flows_before  flows of the old build and the protocol, none of which has the rule
--   captures      captures of the new build that show it
--   capture       the first of these captures by name
--   frame         the first frame in it that shows the rule
--   message       what ackscope says of that place
--
-- Run it beside the folder tables that `ackscope batch -o tables --manifest …` wrote:
--   duckdb -f studio-new-rules.sql
-- For a folder elsewhere, change the paths below; in an object store, to read_parquet('s3://…').
WITH
compared AS (
  SELECT '1.4' AS build, 'before' AS turn
  UNION ALL
  SELECT '1.5', 'after'
),
captures AS (
  SELECT capture, build
  FROM read_parquet('tables/captures.parquet', hive_partitioning = false)
),
flows AS (
  SELECT file, flow, protocol
  FROM read_parquet('tables/flows/**/*.parquet', hive_partitioning = false)
),
findings AS (
  SELECT file, flow, frame, protocol, rule, side, severity, message
  FROM read_parquet('tables/findings/**/*.parquet', hive_partitioning = false)
),
chosen AS (SELECT c.capture AS capture, p.turn AS turn FROM captures AS c JOIN compared AS p ON c.build = p.build),
totals AS (
  SELECT coalesce(f.protocol, 'none') AS protocol,
    count(*) FILTER (WHERE s.turn = 'before') AS flows_before,
    count(*) FILTER (WHERE s.turn = 'after') AS flows_after
  FROM flows AS f JOIN chosen AS s ON f.file = s.capture
  GROUP BY coalesce(f.protocol, 'none')
),
marked AS (
  SELECT s.turn AS turn, coalesce(x.protocol, 'none') AS protocol, x.rule AS rule, x.severity AS severity,
    x.file AS file, x.flow AS flow, x.frame AS frame, x.message AS message,
    row_number() OVER (
      PARTITION BY s.turn, coalesce(x.protocol, 'none'), x.rule ORDER BY x.file, x.frame, x.flow, x.side, x.message
    ) AS place
  FROM findings AS x JOIN chosen AS s ON x.file = s.capture
),
rules AS (
  SELECT protocol, rule,
    max(CASE severity WHEN 'error' THEN 3 WHEN 'warn' THEN 2 ELSE 1 END) AS gravity,
    count(DISTINCT CASE WHEN turn = 'before' THEN file END) AS captures_before,
    count(DISTINCT CASE WHEN turn = 'after' THEN file END) AS captures_after
  FROM marked
  GROUP BY protocol, rule
),
counted AS (
  SELECT protocol, rule, count(*) AS with_after
  FROM (SELECT DISTINCT protocol, rule, file, flow FROM marked WHERE turn = 'after') AS flows_with_rule
  GROUP BY protocol, rule
)
SELECT CASE r.gravity WHEN 3 THEN 'error' WHEN 2 THEN 'warn' ELSE 'note' END AS severity,
  r.protocol AS protocol, r.rule AS rule, n.with_after AS with_after, t.flows_after AS flows_after,
  t.flows_before AS flows_before, r.captures_after AS captures, e.file AS capture, e.frame AS frame,
  e.message AS message
FROM rules AS r
JOIN totals AS t ON t.protocol = r.protocol
JOIN counted AS n ON n.protocol = r.protocol AND n.rule = r.rule
JOIN marked AS e ON e.protocol = r.protocol AND e.rule = r.rule
WHERE r.captures_before = 0 AND t.flows_before > 0 AND e.turn = 'after' AND e.place = 1
ORDER BY r.gravity DESC, with_after DESC, protocol, rule;
