package front

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/embedgw"
	"github.com/versity/versitygw/s3api"

	"edged/control/client"
)

// Options is what a front needs.
type Options struct {
	Node  *client.Client // required: with a token of the role operator; the caller closes it
	Space string         // required: the Space whose object buckets are served, in the tenant of the token
	// Access and Secret are the one pair of keys that requests are signed with. Required: 3 and 16 characters at least.
	Access, Secret string

	Listen            string // required: host:port, or the path of a unix socket
	CertFile, KeyFile string // PEM, both or none; without them it speaks plain HTTP
	Region            string // that signatures name; "" means us-east-1
	MaxConnections    int    // required: at once; as many requests
	// DropMetadata takes objects whose metadata no bucket keeps and drops it, where such a put is refused without.
	DropMetadata bool
	Log          *slog.Logger // nil discards

	onListen func() // tests: the listener is there
}

func (o *Options) check() error {
	switch {
	case o.Node == nil || o.Space == "" || o.Listen == "":
		return errors.New("a node, a Space and an address to listen at are needed")
	case len(o.Access) < 3 || len(o.Secret) < 16:
		return errors.New("the access key must have at least 3 characters and the secret key at least 16")
	case (o.CertFile == "") != (o.KeyFile == ""):
		return errors.New("a certificate needs its key, and a key its certificate")
	case o.MaxConnections < 1:
		return errors.New("at least one connection must be allowed")
	}
	return nil
}

// Run serves until ctx ends, then waits up to ten seconds for requests that run. One front runs in a process at a time: that is the
// library's limit.
func Run(ctx context.Context, opt Options) error {
	if err := opt.check(); err != nil {
		return err
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	acl, err := json.Marshal(auth.ACL{Owner: opt.Access, Grantees: []auth.Grantee{{Permission: auth.PermissionFullControl, Access: opt.Access, Type: types.TypeCanonicalUser}}})
	if err != nil {
		return err
	}
	f := &front{opt: opt, base: base, acl: acl}
	account := accounts{auth.NewIAMServiceSingle(auth.Account{Access: opt.Access, Secret: opt.Secret, Role: auth.RoleAdmin})}
	extra := []s3api.Option{s3api.WithMiddleware("/", limits)}
	if opt.onListen != nil {
		extra = append(extra, s3api.WithOnListen(opt.onListen))
	}
	return embedgw.RunVersityGW(ctx, f, &embedgw.Config{
		RootUserAccess: opt.Access, RootUserSecret: opt.Secret, IAMService: account, Region: opt.Region, Ports: []string{opt.Listen},
		MaxConnections: opt.MaxConnections, MaxRequests: opt.MaxConnections, MultipartMaxParts: maxParts,
		CertFile: opt.CertFile, KeyFile: opt.KeyFile, Quiet: true, SocketPerm: "0600", S3Options: extra,
	})
}

// answerTime is how long the node may take for a document.
const answerTime = time.Minute

// front is the library's backend. Safe for concurrent use.
type front struct {
	backend.BackendUnsupported // refuses with NotImplemented what is not here

	opt Options
	// base ends with the front. Calls of the node hang on it and not on the library's request, which is used again for another one and
	// does not end when its client leaves.
	base context.Context
	acl  []byte // of every bucket, as the library writes it
}

// accounts is the library's service of one account, whose answer to every other access key the library does not know.
type accounts struct{ auth.IAMService }

// GetUserAccount returns the account of an access key.
func (a accounts) GetUserAccount(access string) (auth.Account, error) {
	account, err := a.IAMService.GetUserAccount(access)
	if err != nil {
		err = auth.ErrNoSuchUser
	}
	return account, err
}

// String names the backend to the library.
func (f *front) String() string { return "edged" }

// brief bounds a call that is answered with a document.
func (f *front) brief() (context.Context, context.CancelFunc) {
	return context.WithTimeout(f.base, answerTime)
}

// ask makes a call that is answered with a document.
func (f *front) ask(call client.Call, out any) error {
	ctx, cancel := f.brief()
	defer cancel()
	return f.opt.Node.Ask(ctx, call, out)
}
