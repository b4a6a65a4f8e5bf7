-- What went wrong in the last hour, by site?
--
-- An operator asks this first. Sensors tell a finding several times: when it is new, each time its
-- count has doubled, and at the end of its flow. The last one counts. What a flow's end confirms
-- replaces what was told before.
--
-- Columns, the gravest first:
--   site        where the sensors are
--   severity    note, warn or error
--   rule        see `ackscope explain RULE`
--   sensors     sensors that told it
--   flows       flows that have it
--   flows_open  flows that went on when it was told: it is provisional
--   occurrences how often it occurred, since the flows began
--   last_seen   when it occurred last, by the sensors' clocks
--
{{how}}
WITH
findings AS (
  SELECT site, sensor, number, stored, uid, rule, side, severity, certainty, count, last_time, provisional
  FROM {{table "findings"}}
),
told AS (
  SELECT site, sensor, stored, uid, rule, severity, count, last_time, coalesce(provisional, FALSE) AS open,
    row_number() OVER (PARTITION BY site, sensor, uid, rule, side, certainty ORDER BY number DESC) AS place,
    max(CASE WHEN coalesce(provisional, FALSE) THEN 0 ELSE 1 END) OVER (PARTITION BY site, sensor, uid) AS ended
  FROM findings
)
SELECT site, severity, rule, count(DISTINCT sensor) AS sensors, count(DISTINCT uid) AS flows,
  count(DISTINCT CASE WHEN open THEN uid END) AS flows_open, sum(count) AS occurrences,
  max(last_time) AS last_seen
FROM told
WHERE place = 1 AND (ended = 0 OR NOT open) AND stored >= now() - INTERVAL 1 HOUR
GROUP BY site, severity, rule
ORDER BY CASE severity WHEN 'error' THEN 1 WHEN 'warn' THEN 2 ELSE 3 END, flows DESC, site, rule{{close}}
