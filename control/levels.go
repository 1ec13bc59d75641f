package control

import (
	"fmt"
	"slices"
	"strings"

	"edged/control/feed"
	"edged/control/state"
	"edged/internal/fault"
)

// Level is the protocol level of this program, which it announces to the voters.
const Level = state.Level

// announced returns what each member said of its program within the last minute, this one too.
func (c *Control) announced() map[string]feed.Program {
	out := map[string]feed.Program{}
	f := c.opt.Fleet
	if f == nil {
		return out
	}
	if f.Announced != nil {
		out = f.Announced()
	}
	out[c.opt.NodeID] = f.Program
	return out
}

// allowed refuses a command that not all who get the log would carry out: an older program stops at it (state.ErrNewer), and with it a
// vote. It holds until each of them has announced the level; one that is away may come back with the program it had. Unavailable, with
// who is waited for.
func (c *Control) allowed(cmd *state.Command) error {
	if cmd.Level <= 1 || c.opt.Fleet == nil { // all that announce a level have the first
		return nil
	}
	servers, err := c.servers()
	if err != nil {
		return err
	}
	said := c.announced()
	var behind []string
	for _, s := range servers {
		if id := string(s.ID); said[id].Level < cmd.Level {
			behind = append(behind, fmt.Sprintf("%s (%s)", id, levelOf(said, id)))
		}
	}
	if len(behind) == 0 {
		return nil
	}
	slices.Sort(behind)
	return fault.Newf(fault.Unavailable, "control.submit", "nothing was done: this needs level %d, and not all voters have announced that: %s; run the newer "+
		"edged on all of them, or remove those that are gone", cmd.Level, strings.Join(behind, ", "))
}

func levelOf(said map[string]feed.Program, id string) string {
	p, ok := said[id]
	switch {
	case !ok:
		return "not heard of for a minute"
	case p.Level == 0:
		return "announces none"
	}
	return fmt.Sprintf("level %d", p.Level)
}

// levelWarning says that the voters run programs of different levels, "" if they do not, or if one was not heard of.
func levelWarning(voters []string, said map[string]feed.Program) string {
	least, most := -1, 0
	for _, id := range voters {
		p, ok := said[id]
		if !ok {
			return ""
		}
		if most = max(most, p.Level); least < 0 || p.Level < least {
			least = p.Level
		}
	}
	if least < 0 || least == most {
		return ""
	}
	return fmt.Sprintf("the voters are of levels %d to %d: what needs more than level %d waits until all are upgraded", least, most, least)
}
