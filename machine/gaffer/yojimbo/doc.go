// Package yojimbo follows what netcode's packets carry once they are decrypted: packets
// of reliable, connection packets, channels and messages. If no profile says how the
// game packs its messages, infer.go searches for the configuration. It looks for the
// one under which the packets read to their last bit.
package yojimbo
