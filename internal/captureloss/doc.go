// Package captureloss holds the tests of what is made of packets that a tap
// dropped and says so: they are not taken for lost by the network, nor for sent
// or kept back by an endpoint. It has tests only.
package captureloss
