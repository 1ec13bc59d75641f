package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"edged/internal/fault"
	"edged/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// worker-bundle §3, node-surface §2: private, loopback, link-local, multicast, reserved and metadata addresses are
// refused, also when they hide in IPv6.
func TestPublic(t *testing.T) {
	public := []string{
		"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.1",
		"169.253.255.255", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.167.255.255", "192.169.0.0", "198.17.255.255",
		"198.20.0.0", "223.255.255.255", "168.63.129.15", "2606:4700::1111", "2a00:1450::1", "2001:4860::8888", "2001:200::1",
		"::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "3ffe::1",
	}
	closed := []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.0", "100.127.255.255", "100.100.100.200", "127.0.0.1",
		"127.255.255.254", "169.254.169.254", "169.254.0.1", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.192",
		"192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1",
		"239.255.255.255", "240.0.0.1", "255.255.255.255", "168.63.129.16",
		"::", "::1", "::8.8.8.8", "fe80::1", "fe80::1%eth0", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1", "ff0e::1",
		"100::1", "2001::1", "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1", "2002:808:808::1", "2002:a00:1::1",
		"3fff::1", "5f00::1", "64:ff9b:1::1", "4000::1",
		"::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "64:ff9b::10.0.0.1", "64:ff9b::127.0.0.1",
		"2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:10.0.0.1",
	}
	for _, a := range public {
		if !Public(netip.MustParseAddr(a)) {
			t.Errorf("%s is told not to be public", a)
		}
	}
	for _, a := range closed {
		if Public(netip.MustParseAddr(a)) {
			t.Errorf("%s is told to be public", a)
		}
	}
	if Public(netip.Addr{}) {
		t.Error("no address is told to be public")
	}
}

func policy(t *testing.T, opt Options) *Policy {
	t.Helper()
	p, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPolicy(t *testing.T) {
	rules, err := ParseRules(`
		# first match decides
		deny  10.1.0.0/16
		allow 10.0.0.0/8 443
		allow 192.168.1.1 8000-8010
		allow fd00::/8
		deny  8.8.8.8
		default none`)
	if err != nil {
		t.Fatal(err)
	}
	forbidden := netip.MustParseAddrPort("10.0.0.9:443")
	rules.Forbidden = func(a netip.AddrPort) bool { return a == forbidden }
	policies := map[string]*Policy{
		"public":   policy(t, Options{}),
		"none":     policy(t, Options{Mode: Nothing}),
		"anything": policy(t, Options{Mode: Anything}),
		"rules":    policy(t, rules),
		"denied":   policy(t, Options{Rules: []Rule{{Block: netip.MustParsePrefix("8.8.8.8/8")}}}),
	}
	for _, tt := range []struct {
		to      string
		allowed string // names of the policies that let it pass
	}{
		{"8.8.8.8:443", "public anything"},
		{"9.9.9.9:53", "public anything denied"},
		{"127.0.0.1:80", "anything"},
		{"10.0.0.1:443", "anything rules"},
		{"10.0.0.1:80", "anything"},
		{"10.0.0.9:443", "anything"},
		{"[::ffff:10.0.0.9]:443", "anything"},
		{"[64:ff9b::10.0.0.9]:443", "anything"},
		{"[::ffff:10.0.0.1]:443", "anything rules"},
		{"[64:ff9b::10.0.0.1]:443", "anything rules"},
		{"10.1.0.1:443", "anything"},
		{"192.168.1.1:8000", "anything rules"},
		{"192.168.1.1:8010", "anything rules"},
		{"192.168.1.1:8011", "anything"},
		{"192.168.1.1:7999", "anything"},
		{"192.168.1.2:8000", "anything"},
		{"[fd00::1]:1", "anything rules"},
		{"[fd00::1%eth0]:1", "anything"},
		{"8.8.8.8:0", ""},
	} {
		for name, p := range policies {
			err := p.Check(netip.MustParseAddrPort(tt.to))
			if want := strings.Contains(" "+tt.allowed+" ", " "+name+" "); (err == nil) != want {
				t.Errorf("%s under %s: %v, want allowed %t", tt.to, name, err, want)
			}
			if err != nil && (!errors.Is(err, ErrDenied) || fault.CodeOf(err) != fault.Denied) {
				t.Errorf("%s: %v is no refusal of this package", tt.to, err)
			}
		}
	}
	if err := policies["anything"].Check(netip.AddrPort{}); err == nil {
		t.Error("no address passes")
	}
	if n := testing.AllocsPerRun(100, func() { policies["rules"].Check(netip.AddrPortFrom(netip.AddrFrom4([4]byte{8, 8, 8, 8}), 1)) }); n != 0 {
		t.Errorf("Check allocates %v times", n)
	}
}

// The address that is judged is the one connected to: a name that leads to a closed address is refused although nobody
// could tell by the name.
func TestDialerJudgesTheConnectedAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, address := range []string{l.Addr().String(), "localhost:" + port, "[::ffff:127.0.0.1]:" + port} {
		c, err := policy(t, Options{}).Dialer(0).DialContext(ctx, "tcp", address)
		if !errors.Is(err, ErrDenied) {
			t.Errorf("%s: %v, want a refusal", address, err)
		}
		if c != nil {
			c.Close()
		}
	}
	c, err := policy(t, Options{Mode: Anything}).Dialer(time.Second).DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if err := policy(t, Options{Mode: Anything}).Control(ctx, "udp4", "8.8.8.8:53", nil); !errors.Is(err, ErrDenied) {
		t.Errorf("UDP: %v", err)
	}
	if err := policy(t, Options{Mode: Anything}).Control(ctx, "tcp4", "nonsense", nil); !errors.Is(err, ErrDenied) {
		t.Errorf("nonsense: %v", err)
	}
}

func TestParseRulesReportsEveryFault(t *testing.T) {
	_, err := ParseRules("permit 1.2.3.4\nallow\nallow 1.2.3.4/33\nallow 1.2.3.4 0\nallow 1.2.3.4 9-8\nallow 1.2.3.4 65536\n" +
		"allow ::ffff:1.2.3.4\nallow 1.2.3.4 80 81\ndefault maybe\ndefault none\nallow 10.0.0.0/8 # fine\nallow fe80::1%x")
	for _, line := range []string{"line 1:", "line 2:", "line 3:", "line 4:", "line 5:", "line 6:", "line 7:", "line 8:", "line 9:", "line 10: a second", "line 12:"} {
		if err == nil || !strings.Contains(err.Error(), line) {
			t.Errorf("%q is missing in %v", line, err)
		}
	}
	if err != nil && strings.Contains(err.Error(), "line 11:") {
		t.Errorf("the good line is reported: %v", err)
	}
	if _, err := ParseRules(strings.Repeat("deny 1.2.3.4\n", maxRules+1)); err == nil {
		t.Error("any number of rules is accepted")
	}
	if _, err := New(Options{Mode: 9, Rules: []Rule{{}}}); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("invalid options: %v", err)
	}
}

// Rules that parse make a policy.
func FuzzParseRules(f *testing.F) {
	f.Add("allow 10.0.0.0/8 443\ndeny ::/0 # all\ndefault none")
	f.Add("allow 1.2.3.4 1-65535")
	f.Fuzz(func(t *testing.T, text string) {
		opt, err := ParseRules(text)
		if err != nil {
			return
		}
		p, err := New(opt)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		for _, r := range opt.Rules {
			p.Check(netip.AddrPortFrom(r.Block.Addr(), r.FirstPort))
		}
	})
}
