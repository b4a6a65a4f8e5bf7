// Package yojimbo follows what yojimbo puts into netcode's packets once they are decrypted:
// packets of reliable, connection packets, channels and messages. Where no profile
// says how the game packs its messages, infer.go searches for the configuration under
// which the packets read to their last bit.
package yojimbo
