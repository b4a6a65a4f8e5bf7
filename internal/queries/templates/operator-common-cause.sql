-- Which trouble do several sites have at once with players of one network?
--
-- An operator asks this to tell a bad provider from a bad server. It looks at flows that ended within
-- an hour. A network is the first three numbers of an IPv4 address. An IPv6 address stands for itself.
--
-- Columns, the largest difference first:
--   rule              see `ackscope explain RULE`
--   network           of one end of the flows
--   sites             sites that see the rule there: two or more
--   site_names        their names
--   flows_with        flows of the network that have the rule
--   flows             flows of the network
--   flows_with_others flows of all other networks that have the rule
--   flows_others      flows of all other networks
--   share             flows_with of flows
--   share_others      the same of the others; NULL where there are none
--
{{how}}
WITH
ended AS (
  SELECT site, sensor, uid, a, b,
    row_number() OVER (PARTITION BY site, sensor, uid ORDER BY number DESC) AS place
  FROM {{table "flows"}}
  WHERE stored >= now() - INTERVAL 1 HOUR
),
flows AS (SELECT site, sensor, uid, a, b FROM ended WHERE place = 1),
findings AS (
  SELECT DISTINCT site, sensor, uid, rule
  FROM {{table "findings"}}
  WHERE NOT coalesce(provisional, FALSE)
),
addresses AS (
  SELECT site, sensor, uid, regexp_replace(a, ':[0-9]+$', '') AS address FROM flows
  UNION ALL
  SELECT site, sensor, uid, regexp_replace(b, ':[0-9]+$', '') FROM flows
),
-- Both ends may be of one network, which then counts once.
ends AS (
  SELECT DISTINCT site, sensor, uid,
    {{network "address"}} AS network
  FROM addresses
),
totals AS (SELECT network, count(*) AS flows FROM ends GROUP BY network),
marked AS (
  SELECT f.site AS site, f.sensor AS sensor, f.uid AS uid, x.rule AS rule
  FROM flows AS f JOIN findings AS x ON x.site = f.site AND x.sensor = f.sensor AND x.uid = f.uid
),
rules AS (SELECT rule, count(*) AS flows_with FROM marked GROUP BY rule),
pairs AS (
  SELECT m.rule AS rule, e.network AS network, count(DISTINCT m.site) AS sites,
    {{names "m.site"}} AS site_names, count(*) AS flows_with
  FROM marked AS m JOIN ends AS e ON e.site = m.site AND e.sensor = m.sensor AND e.uid = m.uid
  GROUP BY m.rule, e.network
),
compared AS (
  SELECT p.rule AS rule, p.network AS network, p.sites AS sites, p.site_names AS site_names,
    p.flows_with AS flows_with, t.flows AS flows, r.flows_with - p.flows_with AS flows_with_others,
    (SELECT count(*) FROM flows) - t.flows AS flows_others
  FROM pairs AS p JOIN totals AS t ON t.network = p.network JOIN rules AS r ON r.rule = p.rule
  WHERE p.sites >= 2
),
shares AS (
  SELECT rule, network, sites, site_names, flows_with, flows, flows_with_others, flows_others,
    1e0 * flows_with / flows AS share, 1e0 * flows_with_others / nullif(flows_others, 0) AS share_others
  FROM compared
)
SELECT rule, network, sites, site_names, flows_with, flows, flows_with_others, flows_others, share, share_others
FROM shares
ORDER BY share - share_others DESC NULLS LAST, rule, network{{close}}
