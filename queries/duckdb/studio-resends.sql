-- On which platform are packets sent again most often?
--
-- A studio asks this when players of one platform complain. Where no protocol explains a flow, its
-- resends are unknown: its packets are no part of the rate.
--
-- Columns, the highest rate first:
--   platform         label of the manifest
--   protocol         none for flows that no protocol explains
--   transport        udp or tcp
--   sides            sides of flows whose resends are known
--   sides_unknown    sides whose resends are not known
--   packets          packets that the known sides sent
--   resends          of them, packets with content that was sent before
--   resends_per_1000 resends of 1,000 packets; NULL where no side is known
--
-- Run it beside the folder tables that `ackscope batch -o tables --manifest …` wrote:
--   duckdb -f studio-resends.sql
-- For a folder elsewhere, change the paths below; in an object store, to read_parquet('s3://…').
WITH
captures AS (
  SELECT capture, platform
  FROM read_parquet('tables/captures.parquet', hive_partitioning = false)
),
flows AS (
  SELECT file, coalesce(protocol, 'none') AS protocol, transport, packets_a, packets_b, resends_a, resends_b
  FROM read_parquet('tables/flows/**/*.parquet', hive_partitioning = false)
),
sides AS (
  SELECT file, protocol, transport, packets_a AS packets, resends_a AS resends FROM flows
  UNION ALL
  SELECT file, protocol, transport, packets_b, resends_b FROM flows
),
sums AS (
  SELECT c.platform AS platform, s.protocol AS protocol, s.transport AS transport,
    count(s.resends) AS sides, count(*) - count(s.resends) AS sides_unknown,
    sum(CASE WHEN s.resends IS NOT NULL THEN s.packets END) AS packets, sum(s.resends) AS resends
  FROM sides AS s JOIN captures AS c ON s.file = c.capture
  GROUP BY c.platform, s.protocol, s.transport
)
SELECT platform, protocol, transport, sides, sides_unknown, packets, resends,
  1e3 * resends / nullif(packets, 0) AS resends_per_1000
FROM sums
ORDER BY resends_per_1000 DESC NULLS LAST, platform NULLS LAST, protocol, transport;
