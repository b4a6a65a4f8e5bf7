package hub

import (
	"fmt"
	"io"
	"strings"
)

// WriteConfig writes the users in the language of nats-server's configuration.
func (a *Access) WriteConfig(to io.Writer) error {
	var b strings.Builder
	b.WriteString("# In the account that has JetStream: users = [ … ]\nusers = [\n")
	list := func(name string, subjects []string) {
		for i := range subjects {
			subjects[i] = fmt.Sprintf("%q", subjects[i])
		}
		fmt.Fprintf(&b, "      %s: { allow: [%s] }\n", name, strings.Join(subjects, ", "))
	}
	for _, u := range a.users() {
		fmt.Fprintf(&b, "  { nkey: %s\n    permissions: {\n", u.Nkey)
		list("publish", u.Permissions.Publish.Allow)
		if s := u.Permissions.Subscribe; s != nil {
			list("subscribe", s.Allow)
		}
		if r := u.Permissions.Response; r != nil {
			fmt.Fprintf(&b, "      allow_responses: { max: %d, expires: %q }\n", r.MaxMsgs, r.Expires)
		}
		b.WriteString("    }\n  }\n")
	}
	b.WriteString("]\n")
	_, err := io.WriteString(to, b.String())
	return err
}
