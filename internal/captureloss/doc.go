// Package captureloss tests captures whose tap dropped packets and reports
// that. For example, a tap drops 3 % of the frames. ackscope must not report
// them as network loss, nor as packets that an endpoint resent or held back.
// The package has tests only.
package captureloss
