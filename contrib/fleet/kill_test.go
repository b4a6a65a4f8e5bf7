package fleet_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

// heavy is how much more the tests do under `make fleet`.
func heavy() bool { return os.Getenv("ACKSCOPE_FLEET") != "" }

// TestKills kills servers, collectors and sensors while rows come. Nothing that was spooled may be missing, and no
// row may be there twice. One of the sensors tells rows of another version, which the collector keeps as they are.
func TestKills(t *testing.T) {
	servers, rows, rounds := 1, 6_000, 1
	if heavy() {
		servers, rows, rounds = 3, 102_400, 2
	}
	f := newFleet(t, servers, []string{"eu", "us"})
	collector := f.collector()
	kinds := []struct{ site, name string }{{"eu", "eu-1"}, {"eu", "eu-2"}, {"us", "us-1"}, {"us", "us-2"}}
	each := rows / len(kinds)
	var sensors []*process
	for _, k := range kinds {
		rate := 1500
		if heavy() {
			rate = 800
		}
		sensors = append(sensors, f.numbers(k.site, k.name, each, rate, fmt.Sprintf("--other=%t", k.name == "us-2")))
	}
	begun := time.Now()
	var killed struct{ servers, collectors, sensors int }
	for round := range rounds {
		for i := range max(servers, 2) {
			h := f.hubs[i%servers]
			time.Sleep(time.Second)
			h.kill()
			killed.servers++
			if servers > 1 && round == 1 && i == 0 { // two of three: nothing can be stored for a while
				f.hubs[1].kill()
				killed.servers++
				f.hubs[1].again()
			}
			sensors[(2*round+i)%len(sensors)].kill()
			killed.sensors++
			time.Sleep(300 * time.Millisecond)
			sensors[(2*round+i)%len(sensors)].again()
			collector.kill()
			killed.collectors++
			h.again()
			time.Sleep(500 * time.Millisecond)
			collector.again()
			h.says("ready", time.Minute)
			time.Sleep(2 * time.Second)
		}
	}
	for _, s := range sensors {
		if err := s.wait(4 * time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	took := time.Since(begun)
	v := verdict{}
	until(t, time.Minute, func() bool {
		c, n := readTables(t, f.file("tables"))
		v = verdict{rows: n}
		for _, k := range kinds {
			j, err := readJournal(f.file("journal-" + k.name))
			if err != nil {
				t.Fatal(err)
			}
			v.compare(c, k.name, j)
		}
		return v.missing == 0
	})
	if err := collector.stop(); err != nil {
		t.Errorf("collector: %v", err)
	}
	t.Logf("kill -9 of %d servers, %d collectors, %d sensors in %.0f s: %v", killed.servers, killed.collectors,
		killed.sensors,
		took.Seconds(), &v)
	if v.missing > 0 || v.twice > 0 || v.foreign > 0 || v.rows < rows {
		t.Errorf("expected at least %d rows, none missing, none twice, found %v", rows, &v)
	}
}

// TestHubAway fills the spool of a sensor while the hub is away. The gaps in the tables must be what the sensor
// reports as dropped.
func TestHubAway(t *testing.T) {
	f := newFleet(t, 1, []string{"eu"})
	collector := f.collector()
	f.hubs[0].kill()
	const rows = 12_800
	s := f.numbers("eu", "eu-1", rows, 100_000, "--spool-size", strconv.Itoa(2<<20))
	until(t, time.Minute, func() bool {
		j, err := readJournal(f.file("journal-eu-1"))
		return err == nil && j.spooled() == rows
	})
	f.hubs[0].again()
	if err := s.wait(time.Minute); err != nil {
		t.Fatal(err)
	}
	var confirmed, dropped, left int
	if _, err := fmt.Sscanf(s.said(), "confirmed %d dropped %d left %d", &confirmed, &dropped, &left); err != nil {
		t.Fatalf("%v in %q", err, s.said())
	}
	until(t, time.Minute, func() bool { _, n := readTables(t, f.file("tables")); return n >= confirmed })
	if err := collector.stop(); err != nil {
		t.Error(err)
	}
	c, n := readTables(t, f.file("tables"))
	gaps := 0
	for _, of := range c {
		for _, seen := range of {
			last := uint64(0)
			for seq := range seen {
				last = max(last, seq)
			}
			gaps += int(last) - len(seen)
		}
	}
	t.Logf("%d rows told while the hub was away, %d confirmed later, %d dropped; the tables have %d rows and gaps of %d",
		rows, confirmed, dropped, n, gaps)
	if dropped == 0 || gaps != dropped || n != rows-dropped || left != 0 {
		t.Errorf("expected that the gaps equal the drops, found %d and %d", gaps, dropped)
	}
}
