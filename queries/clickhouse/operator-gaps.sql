-- Which sensors lost rows?
--
-- An operator asks this before other questions: what is missing speaks neither for nor against a site.
-- A sensor numbers its rows from 1 in each run. A number that lacks was pushed out of a full spool, or
-- waits in a spool, or its file was moved away. Rows behind the newest one cannot be seen.
--
-- Columns, those with the most missing rows first:
--   kind          flows or findings
--   site          site of the sensor
--   sensor        its name
--   epoch         one run of the sensor
--   rows          rows that are in the tables
--   newest        the largest number
--   missing       numbers up to it that are not there
--   first_missing the least of them; NULL if none is missing
--   twice         rows that are there once more: always 0
--   last_stored   when the hub stored the newest row
--
-- Run it beside the folder tables that `ackscope-fleet collect -o tables` writes:
--   clickhouse local --queries-file operator-gaps.sql
-- For a folder elsewhere, change the paths below; in an object store, to s3('https://…', Parquet).
WITH
all_rows AS (
  SELECT 'flows' AS kind, site, sensor, epoch, seq, stored FROM file('tables/flows/**/*.parquet', Parquet)
  UNION ALL
  SELECT 'findings', site, sensor, epoch, seq, stored FROM file('tables/findings/**/*.parquet', Parquet)
),
numbers AS (
  SELECT kind, site, sensor, epoch, seq, count(*) AS times, max(stored) AS stored_last
  FROM all_rows
  GROUP BY kind, site, sensor, epoch, seq
),
-- Without a gap the n-th row has the number n.
places AS (
  SELECT kind, site, sensor, epoch, seq, times, stored_last,
    row_number() OVER (PARTITION BY kind, site, sensor, epoch ORDER BY seq) AS place
  FROM numbers
)
SELECT kind, site, sensor, epoch, sum(times) AS rows, max(seq) AS newest, max(seq) - count(*) AS missing,
  min(CASE WHEN seq > place THEN place END) AS first_missing, sum(times) - count(*) AS twice,
  max(stored_last) AS last_stored
FROM places
GROUP BY kind, site, sensor, epoch
ORDER BY missing DESC, kind, site, sensor, epoch
SETTINGS join_use_nulls = 1, use_hive_partitioning = 0;
