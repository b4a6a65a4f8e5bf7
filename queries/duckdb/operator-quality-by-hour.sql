-- How did loss and round trips of each site change from hour to hour?
--
-- An operator asks this about evenings and weekends. A flow counts in the hour in which its last
-- packet was captured. Each of its two sides counts once. A figure that the capture does not show is
-- unknown: it is counted, and no part of a quantile.
--
-- Columns:
--   site              site of the sensors
--   hour              the hour, by the sensors' clocks
--   flows             flows that ended in it
--   flows_with_errors flows with a finding of severity error
--   flows_unexplained flows that no protocol explains: their findings are not known
--   loss_unknown      sides whose loss on the path is not known
--   loss_median       share of a side's packets that the network lost, 0 to 1
--   loss_p95          95 % of the sides lose less
--   rtt_unknown       sides whose round trip is not known
--   rtt_ms_median     mean time from a packet to its ack as captured, in ms
--   rtt_ms_p95        95 % of the sides have a shorter one
--
-- Run it beside the folder tables that `ackscope-fleet collect -o tables` writes:
--   duckdb -f operator-quality-by-hour.sql
-- For a folder elsewhere, change the paths below; in an object store, to read_parquet('s3://…').
WITH
told AS (
  SELECT site, last_time, errors, path_loss_a, path_loss_b, wire_rtt_ms_a, wire_rtt_ms_b,
    row_number() OVER (PARTITION BY site, sensor, uid ORDER BY number DESC) AS place
  FROM read_parquet('tables/flows/**/*.parquet', hive_partitioning = false)
),
flows AS (
  SELECT site, date_trunc('hour', last_time) AS hour, errors, path_loss_a, path_loss_b, wire_rtt_ms_a, wire_rtt_ms_b
  FROM told
  WHERE place = 1
),
sides AS (
  SELECT site, hour, 1 AS flow, errors, path_loss_a AS loss, wire_rtt_ms_a AS rtt FROM flows
  UNION ALL
  SELECT site, hour, 0, NULL, path_loss_b, wire_rtt_ms_b FROM flows
)
SELECT site, hour, sum(flow) AS flows, count(*) FILTER (WHERE errors > 0) AS flows_with_errors,
  sum(flow) - count(errors) AS flows_unexplained,
  count(*) - count(loss) AS loss_unknown,
  quantile_cont(loss, 0.5) AS loss_median,
  quantile_cont(loss, 0.95) AS loss_p95,
  count(*) - count(rtt) AS rtt_unknown,
  quantile_cont(rtt, 0.5) AS rtt_ms_median,
  quantile_cont(rtt, 0.95) AS rtt_ms_p95
FROM sides
GROUP BY site, hour
ORDER BY site, hour;
