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
--   duckdb -f studio-network-quality.sql
-- For a folder elsewhere, change the paths below; in an object store, to read_parquet('s3://…').
WITH
captures AS (
  SELECT capture, build, region
  FROM read_parquet('tables/captures.parquet', hive_partitioning = false)
),
flows AS (
  SELECT file, path_loss_a, path_loss_b, wire_rtt_ms_a, wire_rtt_ms_b
  FROM read_parquet('tables/flows/**/*.parquet', hive_partitioning = false)
),
sides AS (
  SELECT file, path_loss_a AS loss, wire_rtt_ms_a AS rtt FROM flows
  UNION ALL
  SELECT file, path_loss_b, wire_rtt_ms_b FROM flows
)
SELECT c.build AS build, c.region AS region, count(*) AS sides,
  count(*) - count(s.loss) AS loss_unknown,
  quantile_cont(s.loss, 0.5) AS loss_median,
  quantile_cont(s.loss, 0.95) AS loss_p95,
  count(*) - count(s.rtt) AS rtt_unknown,
  quantile_cont(s.rtt, 0.5) AS rtt_ms_median,
  quantile_cont(s.rtt, 0.95) AS rtt_ms_p95
FROM sides AS s JOIN captures AS c ON s.file = c.capture
GROUP BY c.build, c.region
ORDER BY build NULLS LAST, region NULLS LAST;
