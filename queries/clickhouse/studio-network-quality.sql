-- How good was the network, by build and region?
--
-- A studio asks this to tell a bad build from a bad network. Each flow has two sides, and each side
-- counts once. A figure that the capture does not show is unknown: it is counted, and no part of a
-- quantile.
--
-- Columns:
--   build         label of the manifest
--   region        label of the manifest
--   sides         sides of all flows
--   loss_unknown  sides whose loss on the path is not known
--   loss_median   share of a side's packets that the network lost, 0 to 1
--   loss_p95      95 % of the sides lose less
--   rtt_unknown   sides whose round trip is not known
--   rtt_ms_median mean time from a packet to its ack as captured, in ms
--   rtt_ms_p95    95 % of the sides have a shorter one
--
-- Run it beside the folder tables that `ackscope batch -o tables --manifest …` wrote:
--   clickhouse local --queries-file studio-network-quality.sql
-- For a folder elsewhere, change the paths below; in an object store, to s3('https://…', Parquet).
WITH
captures AS (
  SELECT capture, build, region
  FROM file('tables/captures.parquet', Parquet)
),
flows AS (
  SELECT file, path_loss_a, path_loss_b, wire_rtt_ms_a, wire_rtt_ms_b
  FROM file('tables/flows/**/*.parquet', Parquet)
),
sides AS (
  SELECT file, path_loss_a AS loss, wire_rtt_ms_a AS rtt FROM flows
  UNION ALL
  SELECT file, path_loss_b, wire_rtt_ms_b FROM flows
)
SELECT c.build AS build, c.region AS region, count(*) AS sides,
  count(*) - count(s.loss) AS loss_unknown,
  quantileExactInclusive(0.5)(s.loss) AS loss_median,
  quantileExactInclusive(0.95)(s.loss) AS loss_p95,
  count(*) - count(s.rtt) AS rtt_unknown,
  quantileExactInclusive(0.5)(s.rtt) AS rtt_ms_median,
  quantileExactInclusive(0.95)(s.rtt) AS rtt_ms_p95
FROM sides AS s JOIN captures AS c ON s.file = c.capture
GROUP BY c.build, c.region
ORDER BY build NULLS LAST, region NULLS LAST
SETTINGS join_use_nulls = 1, use_hive_partitioning = 0;
