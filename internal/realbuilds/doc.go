// Package realbuilds holds the tests that compare what Ackscope says of real
// builds of real libraries with the logs of these builds.
//
// For example, a build of `reliable` never sets bit 31 of ack_bits. Its log says
// that datagram 35 is the first that an unmodified library would have written
// otherwise. That datagram is frame 65 of the capture at its own end. So replay
// must say that this side diverges in frame 65, and must accuse no other side.
//
// The captures lie in testdata/pcaps/realbuilds and testdata/pcaps/family, with
// their logs. A README in each folder says what a right answer is. The package
// has three kinds of checks:
//
//   - whole captures: side and frame of each divergence, against the README and
//     against a naive oracle (oracle_test.go). The oracle says of each datagram
//     whether any correct endpoint can have sent it;
//   - damaged captures of honest builds: cut at random frames, with dropped
//     packets, with a snap length. Replay may accuse no side, and no log may deny
//     a fact that is called certain;
//   - simulated runs of the reference with refusals, fragments and restarts.
//
// Nothing here shares code with the judges, the trackers or the codec.
package realbuilds
