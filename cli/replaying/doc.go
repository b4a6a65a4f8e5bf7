// Package replaying holds replay, with its baselines, matrix and --what-if, and reduce,
// which finds the fewest frames that still show a finding.
package replaying
