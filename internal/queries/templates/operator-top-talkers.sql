-- Which addresses sent the most in the last day?
--
-- An operator asks this when a link is full, or one player sends far more than others. It counts
-- flows that ended. Servers are listed as well: they have many flows.
--
-- Columns, the most bytes first, 20 at most:
--   address           without its port
--   sites             sites that saw it
--   flows             its flows that ended
--   packets           packets that it sent
--   bytes             payload that it sent
--   bytes_per_second  bytes for each second of its flows; NULL where these took no time
--
{{how}}
WITH
told AS (
  SELECT site, a, b, packets_a, packets_b, bytes_a, bytes_b, date_diff('microsecond', time, last_time) AS took,
    row_number() OVER (PARTITION BY site, sensor, uid ORDER BY number DESC) AS place
  FROM {{table "flows"}}
  WHERE stored >= now() - INTERVAL 1 DAY
),
ends AS (
  SELECT site, regexp_replace(a, ':[0-9]+$', '') AS address, packets_a AS packets, bytes_a AS bytes, took
  FROM told WHERE place = 1
  UNION ALL
  SELECT site, regexp_replace(b, ':[0-9]+$', ''), packets_b, bytes_b, took
  FROM told WHERE place = 1
),
sums AS (
  SELECT address, count(DISTINCT site) AS sites, count(*) AS flows, sum(packets) AS packets_sent,
    sum(bytes) AS bytes_sent, sum(took) AS microseconds
  FROM ends
  GROUP BY address
)
SELECT address, sites, flows, packets_sent AS packets, bytes_sent AS bytes,
  1e6 * bytes_sent / nullif(microseconds, 0) AS bytes_per_second
FROM sums
ORDER BY bytes DESC, address
LIMIT 20{{close}}
