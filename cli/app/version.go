package app

import (
	"fmt"
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

// VersionLine returns the line of --version.
func VersionLine() string {
	version, goVersion := BuildVersion()
	if version == "" || version == "(devel)" {
		version = "of an unknown version (built without its repository)"
	}
	return fmt.Sprintf("ackscope %s, %s, %s/%s\n", version, goVersion, runtime.GOOS, runtime.GOARCH)
}
