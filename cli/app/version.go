package app

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// BuildVersion returns the versions of the program and of Go. For a build from
// a clone, the version of the program is its commit.
func BuildVersion() (version, goVersion string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown", runtime.Version()
	}
	version = info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (version == "" || version == "(devel)") {
			version = s.Value
		}
	}
	return strings.TrimSpace(version), info.GoVersion
}

// BuildIdentity returns what tells this build of the program from others. That is its version, or
// the hash of the program where it was built from files that no commit has.
func BuildIdentity() (string, error) {
	version, _ := BuildVersion()
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
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	program, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = program.Close() }() // it was only read
	sum := sha256.New()
	if _, err := io.Copy(sum, program); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// VersionLine returns the line of --version.
func VersionLine() string {
	version, goVersion := BuildVersion()
	if version == "" || version == "(devel)" {
		version = "of an unknown version (built without its repository)"
	}
	return fmt.Sprintf("ackscope %s, %s, %s/%s\n", version, goVersion, runtime.GOOS, runtime.GOARCH)
}
