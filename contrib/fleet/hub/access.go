package hub

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/ackscope/ackscope/contrib/fleet/message"
)

// Operator is the name in an access file of those who collect, fetch and look: they may read all sites.
const Operator = "operator"

// Access lists who may connect. Its file has a line for each key: "site eu UA…" or "operator UA…".
// It holds no secret.
type Access struct {
	Sites     map[string][]string // public keys
	Operators []string
}

// mostAccess bounds an access file: some 10,000 lines.
const mostAccess = 1 << 20

// ReadAccess reads an access file.
func ReadAccess(path string) (*Access, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	a := &Access{Sites: map[string][]string{}}
	lines := bufio.NewScanner(io.LimitReader(f, mostAccess))
	for number := 1; lines.Scan(); number++ {
		if err := a.line(strings.Fields(lines.Text())); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, number, err)
		}
	}
	return a, lines.Err()
}

func (a *Access) line(words []string) error {
	switch {
	case len(words) == 0 || strings.HasPrefix(words[0], "#"):
		return nil
	case len(words) == 3 && words[0] == "site" && nkeys.IsValidPublicUserKey(words[2]):
		if err := message.CheckName("site", words[1]); err != nil {
			return err
		}
		a.Sites[words[1]] = append(a.Sites[words[1]], words[2])
		return nil
	case len(words) == 2 && words[0] == Operator && nkeys.IsValidPublicUserKey(words[1]):
		a.Operators = append(a.Operators, words[1])
		return nil
	}
	return errors.New("expected `site NAME KEY` or `operator KEY`, KEY being a public nkey of a user, found others")
}

// AddKey makes a key for a site, or for an operator if site is empty. It writes the seed to a new file of the folder,
// and adds the public key to the access file. It returns the name of the seed's file.
func AddKey(folder, site string) (string, error) {
	name, line := Operator, Operator
	if site != "" {
		if err := message.CheckName("site", site); err != nil {
			return "", err
		}
		name, line = "site-"+site, "site "+site
	}
	key, err := nkeys.CreateUser()
	if err != nil {
		return "", err
	}
	defer key.Wipe()
	public, err := key.PublicKey()
	if err != nil {
		return "", err
	}
	seed, err := key.Seed()
	if err != nil {
		return "", err
	}
	defer clear(seed)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(folder, name+".key")
	if err := write(path, os.O_EXCL, 0o600, append(seed, '\n')); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("%s: expected no such file, found one: a second key of a site needs another folder", path)
		}
		return "", err
	}
	return path, write(AccessFile(folder), os.O_APPEND, 0o644, []byte(line+" "+public+"\n"))
}

// AccessFile returns the name of the access file in a folder of keys.
func AccessFile(folder string) string { return filepath.Join(folder, "access") }

// write creates a file, or appends to it, and waits until the disk has it.
func write(path string, how int, mode fs.FileMode, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|how, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// answerWithin is how long a sensor may take to answer a request: it cuts its ring meanwhile.
const answerWithin = 2 * time.Minute

// sitePermissions are what the sensors of a site may do. They publish to the site's own subjects, answer requests for
// packets, and write the site's own object store.
func sitePermissions(site string) *server.Permissions {
	store, js := "OBJ_"+message.Bucket(site), "$JS.API."
	return &server.Permissions{
		Publish: &server.SubjectPermission{Allow: []string{
			message.Subjects(message.Flows, site), message.Subjects(message.Findings, site),
			message.Subjects(message.Health, site), "$O." + message.Bucket(site) + ".>",
			js + "STREAM.INFO." + store, js + "STREAM.PURGE." + store, js + "STREAM.MSG.GET." + store,
			js + "DIRECT.GET." + store + ".>",
		}},
		Subscribe: &server.SubjectPermission{Allow: []string{
			message.Inbox(site) + ".>", message.Subjects(message.Fetch, site),
		}},
		Response: &server.ResponsePermission{MaxMsgs: 1, Expires: answerWithin},
	}
}

// operatorPermissions are what a collector, `fetch` and `top` may do: read all, ask sensors, and use JetStream.
// They cannot write a row in the name of a sensor.
func operatorPermissions() *server.Permissions {
	return &server.Permissions{
		Publish: &server.SubjectPermission{Allow: []string{
			message.Subjects(message.Fetch, ""), "$JS.API.>", "$JS.ACK.>",
			"$JS.FC.>",
		}},
	}
}

// users returns the users of a server.
func (a *Access) users() (list []*server.NkeyUser) {
	for site, keys := range a.Sites {
		for _, key := range keys {
			list = append(list, &server.NkeyUser{Nkey: key, Permissions: sitePermissions(site)})
		}
	}
	for _, key := range a.Operators {
		list = append(list, &server.NkeyUser{Nkey: key, Permissions: operatorPermissions()})
	}
	return list
}
