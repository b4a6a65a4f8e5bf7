package anonymise

import (
	"crypto/sha256"

	"golang.org/x/crypto/argon2"
)

// Parameters of Argon2id: the second recommendation of RFC 9106, section 4, for a
// program that may not take 2 GiB of memory.
const (
	stretchPasses  = 3
	stretchMemory  = 64 << 10 // KiB
	stretchThreads = 4        // lanes: a part of the result, whatever the processors
)

// stretchSalt is fixed, so that a secret gives the same key everywhere. It keeps
// tables that were made for other programs from fitting.
const stretchSalt = "ackscope anonymise, key 1"

// KeyOf makes a key of a secret that a person chose. The same secret gives the same
// key in every run and on every machine. It takes 64 MiB of memory and some tenths
// of a second, so that guessing secrets costs as much for each guess.
func KeyOf(secret []byte) [32]byte {
	salt := sha256.Sum256([]byte(stretchSalt))
	return [32]byte(argon2.IDKey(secret, salt[:16], stretchPasses, stretchMemory, stretchThreads, 32))
}
