// Package replaying has two commands. The first, replay, compares captures with references and
// baselines, or runs them again with --what-if. The second, reduce, finds the fewest frames
// that still show a finding or a divergence.
package replaying
