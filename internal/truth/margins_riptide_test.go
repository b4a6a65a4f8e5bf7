package truth

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/riptidelog"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

func riptideScenes(t *testing.T) (list []*scene) {
	dir := t.TempDir()
	folder := filepath.Dir(testenv.Capture(t, "riptide-messages.yaml"))
	for _, prefix := range []string{"u2", "t2", "upy", "tpy"} {
		paths, err := filepath.Glob(filepath.Join(folder, prefix+"*.pcap*.gz"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			named := ripName.FindStringSubmatch(filepath.Base(path))
			if named == nil {
				continue
			}
			list = append(list, riptideScene(t, &scene{
				name: named[1] + "." + named[2], path: uncompressed(t, path, dir), registry: registryOf(), recorded: true,
			}, named[1], named[2], readRipRun(t, named[1])))
		}
	}
	versions := []string{"2.0", "2.1.0", "2.2.1", "main", "2.1-dev-n", "2.1.0:tcp", "2.1-dev-d"}
	networks(func(n int, tap, flags string) {
		flags += " --duration 9s --protocol riptide:" + versions[n%len(versions)]
		if n%3 == 0 {
			flags += " --messages 60"
		}
		if n%4 == 1 {
			flags += " --clients 2"
		}
		if n%5 == 3 {
			flags += " --event-clock"
		}
		run := simulated(t, dir, flags)
		log := parseRipRun(t, simulatedName, run.log)
		list = append(list, riptideRun(t, flags, tap, run, log))
		if n%3 == 0 {
			list = append(list, riptideRun(t, flags+", joined", tap, run.joined(t), log))
		}
		list = append(list, variants(t, n, flags, run, registryOf())...)
	})
	// How connections end, and time out.
	for n, flags := range []string{
		"--end stop --clients 3", "--end kick --clients 2", "--end none", "--outage 3s,9s --duration 16s --no-limits",
		"--outage 3s,9s/1s,100ms --duration 16s", "--loss 35% --no-limits --duration 14s",
		"--outage 2s,4s,6s --duration 16s --no-limits",
		"--loss 20% --delay 200ms --duration 14s",
	} {
		for k, tap := range []string{"a", "b", "between"} {
			flags := flags + fmt.Sprintf(" --tap %s --seed %d --protocol riptide:%s", tap, 100+3*n+k, versions[(n+k)%5])
			if !strings.Contains(flags, "--duration") {
				flags += " --duration 9s --loss 5%"
			}
			run := simulated(t, dir, flags)
			list = append(list, riptideRun(t, flags, tap, run, parseRipRun(t, simulatedName, run.log)))
		}
	}
	// Of heartbeats as the notes have them only what was before tells which are asked.
	for n, flags := range []string{"--tap a", "--tap b --loss 10%", "--tap between --dup 20% --jitter 60ms"} {
		flags += fmt.Sprintf(" --seed %d --protocol riptide:notes --duration 12s", 200+n)
		run := simulated(t, dir, flags)
		log, tap := parseRipRun(t, simulatedName, run.log), strings.Fields(flags)[1]
		list = append(list, riptideRun(t, flags, tap, run, log), riptideRun(t, flags+", joined", tap, run.joined(t), log))
	}
	return append(list, faulty(t, dir, "riptide")...)
}

// riptideRun returns the scene of a simulated run.
func riptideRun(t *testing.T, called, tap string, run simulation, log *riptidelog.Run) *scene {
	t.Helper()
	return riptideScene(t, &scene{name: called, path: run.path, registry: registryOf()}, simulatedName, tap, log)
}

// riptideScene returns a scene its check: what is told against the logs of both ends.
func riptideScene(t *testing.T, s *scene, name, tap string, run *riptidelog.Run) *scene {
	t.Helper()
	s.check = func(c *ripCapture) (faults []string) {
		c.name, c.run, c.tap = name, run, tap
		switch tap {
		case "a":
			c.tap = "client"
		case "b":
			c.tap = "server"
		}
		// Who speaks Pytide, or shares numbers among clients, has logs that do not tell
		// one connection's messages from another's.
		merged := name == "u210_lobby" || name == "u210_three_noquality"
		for _, x := range c.connections(t) {
			for _, side := range []machine.Side{machine.A, machine.B} {
				if !c.unclear(x.sides[side]) && !c.unclear(x.sides[side.Other()]) && !merged {
					faults = append(faults, holdsRiptide(c, &x, side)...)
				}
				if strings.HasPrefix(name, "u2") || strings.HasPrefix(name, "t2") {
					if _, fault := c.relay(&x, side); fault != "" {
						faults = append(faults, fault)
					}
				}
				if c.near(&x, side) && name != simulatedName {
					faults = append(faults, lifeFaults(c, &x, side)...)
				}
			}
		}
		return faults
	}
	return s
}
