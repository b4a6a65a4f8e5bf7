// Package baseline compares two sets of captures that package batch summed up, such as those of two
// builds. It says how often each rule fires, and how times and losses are distributed.
//
//	before := baseline.Of("1.4.1", summary, "build", "1.4.1")
//	after := baseline.Of("1.4.2", summary, "build", "1.4.2")
//	result := baseline.Compare(before, after)
//
// The rate of a rule is how many of 1,000 flows of its protocol have it. Flows of one capture share
// a network and a build. So they count for less than flows of different captures:
//
//   - The design effect says by how much. It is the variance of the rate over captures, divided by
//     that of independent flows. Counts are divided by it. Sources: Cochran, Sampling Techniques
//     (1977), chapter 6, the variance of a ratio; Rao and Scott, Biometrics 48 (1992), 577.
//   - The interval of a rate is Wilson's (1927).
//   - That of a change is Newcombe's hybrid score interval. Source: Statistics in Medicine 17 (1998),
//     873, method 10.
//   - The test of a change is the score test of two shares with Yates's correction (1934).
//   - The distance of two histograms is the largest difference of their cumulative shares. Its test
//     is that of Smirnov (Annals of Mathematical Statistics 19 (1948), 279), where each capture
//     counts as one value.
//   - Many rules are compared, and chance alone makes some look different. Holm's correction
//     (Scandinavian Journal of Statistics 6 (1979), 65) holds the chance of any such report at alpha.
package baseline
