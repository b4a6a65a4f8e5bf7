package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/ackscope/ackscope/cli/app"
)

// Version returns what identifies the build of this program. Where it was built from files that no
// commit has, that is a hash of the program.
var Version = sync.OnceValues(func() (string, error) {
	version, _ := app.BuildVersion()
	info, ok := debug.ReadBuildInfo()
	modified := !ok || version == "" || version == "(devel)" || strings.Contains(version, "dirty")
	if ok {
		for _, s := range info.Settings {
			modified = modified || s.Key == "vcs.modified" && s.Value == "true"
		}
	}
	if !modified {
		return version, nil
	}
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	file, err := os.Open(program)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
})
