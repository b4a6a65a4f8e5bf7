-- Which rules got worse from one build to the next, and in which region?
--
-- A studio asks this before it ships a build. It edits the two builds in `compared`.
-- A rate counts flows, and only those of the rule's protocol. Whether chance alone explains a
-- change says `ackscope batch --before build=1.4 --after build=1.5`.
--
-- Columns, the largest rise first:
--   region           label of the manifest; NULL where a capture has none
--   protocol         none for flows that no protocol explains
--   rule             see `ackscope explain RULE`
--   severity         note, warn or error
--   with_before      flows of the old build that have the rule
--   flows_before     flows of the old build
--   with_after       the same of the new build
--   flows_after      flows of the new build
--   certain_after    flows of with_after in which the rule is certain
--   per_1000_before  with_before of 1,000 flows; NULL where the old build has no flows there
--   per_1000_after   with_after of 1,000 flows; NULL where the new build has no flows there
--   change           per_1000_after less per_1000_before; NULL where one of them is
--
{{how}}
WITH
compared AS (
  SELECT '1.4' AS build, 'before' AS turn
  UNION ALL
  SELECT '1.5', 'after'
),
captures AS (
  SELECT capture, build, region
  FROM {{table "captures"}}
),
flows AS (
  SELECT file, flow, protocol
  FROM {{table "flows"}}
),
findings AS (
  SELECT file, flow, protocol, rule, severity, certainty
  FROM {{table "findings"}}
),
chosen AS (
  SELECT c.capture AS capture, c.region AS region, p.turn AS turn
  FROM captures AS c JOIN compared AS p ON c.build = p.build
),
totals AS (
  SELECT s.region AS region, coalesce(f.protocol, 'none') AS protocol,
    count(*) FILTER (WHERE s.turn = 'before') AS flows_before,
    count(*) FILTER (WHERE s.turn = 'after') AS flows_after
  FROM flows AS f JOIN chosen AS s ON f.file = s.capture
  GROUP BY s.region, coalesce(f.protocol, 'none')
),
-- A flow may have a rule several times: for each side and certainty.
marked AS (
  SELECT s.region AS region, s.turn AS turn, coalesce(x.protocol, 'none') AS protocol, x.rule AS rule,
    x.severity AS severity, x.file AS file, x.flow AS flow,
    max(CASE WHEN x.certainty = 'certain' THEN 1 ELSE 0 END) AS certain
  FROM findings AS x JOIN chosen AS s ON x.file = s.capture
  GROUP BY s.region, s.turn, coalesce(x.protocol, 'none'), x.rule, x.severity, x.file, x.flow
),
rules AS (
  SELECT region, protocol, rule, severity,
    count(*) FILTER (WHERE turn = 'before') AS with_before,
    count(*) FILTER (WHERE turn = 'after') AS with_after,
    count(*) FILTER (WHERE turn = 'after' AND certain = 1) AS certain_after
  FROM marked
  GROUP BY region, protocol, rule, severity
),
rates AS (
  SELECT r.region AS region, r.protocol AS protocol, r.rule AS rule, r.severity AS severity,
    r.with_before AS with_before, t.flows_before AS flows_before, r.with_after AS with_after,
    t.flows_after AS flows_after, r.certain_after AS certain_after,
    1e3 * r.with_before / nullif(t.flows_before, 0) AS per_1000_before,
    1e3 * r.with_after / nullif(t.flows_after, 0) AS per_1000_after
  FROM rules AS r
  JOIN totals AS t ON t.protocol = r.protocol AND t.region IS NOT DISTINCT FROM r.region
)
SELECT region, protocol, rule, severity, with_before, flows_before, with_after, flows_after, certain_after,
  per_1000_before, per_1000_after, per_1000_after - per_1000_before AS change
FROM rates
ORDER BY change DESC NULLS LAST, region NULLS LAST, protocol, rule, severity{{close}}
