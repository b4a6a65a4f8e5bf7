package anonymise

import (
	"crypto/sha256"

	"golang.org/x/crypto/argon2"
)

// Parameters of Argon2id: the second recommendation of RFC 9106, for programs
// that cannot use 2 GiB of memory.
const (
	stretchPasses  = 3
	stretchMemory  = 64 << 10 // KiB
	stretchThreads = 4        // lanes: part of the result, independent of the number of processors
)

// stretchSalt is fixed, so that a secret has the same key everywhere. It makes
// tables that were computed for other programs useless.
const stretchSalt = "ackscope anonymise, key 1"

// KeyOf derives a key from a secret that a person chose. The same secret has
// the same key in every run and on every machine. It takes 64 MiB of memory and
// a few tenths of a second. Each guess at a secret costs as much.
func KeyOf(secret []byte) [32]byte {
	salt := sha256.Sum256([]byte(stretchSalt))
	return [32]byte(argon2.IDKey(secret, salt[:16], stretchPasses, stretchMemory, stretchThreads, 32))
}
