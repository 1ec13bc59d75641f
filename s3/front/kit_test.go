package front

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/versity/versitygw/tests/integration"

	"edged/control/client"
)

const (
	access = "front-access-key"
	secret = "front-secret-key-of-tests"
	limit  = time.Minute // bounds what waits for the node and the front
)

// world is one real node and one front before it, which all tests share: a process has one front.
var world struct {
	node     *client.Client
	endpoint string // of the front, plain HTTP
	conf     *integration.S3Conf
}

func TestMain(m *testing.M) {
	for _, v := range os.Environ() { // what the suite's SDK would read: profiles, regions, authorities
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AWS_") {
			os.Unsetenv(name)
		}
	}
	code, err := serve(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// serve builds a node, runs the tests before it and ends everything it began.
func serve(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "edged-s3-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	stop, err := startNode(dir)
	if err != nil {
		return 1, err
	}
	defer stop()
	where, err := client.Find(client.Where{DataDir: filepath.Join(dir, "data")})
	if err != nil {
		return 1, err
	}
	if world.node, err = client.New(where); err != nil {
		return 1, err
	}
	defer world.node.Close()
	socket := filepath.Join(dir, "s3.sock")
	ctx, cancel := context.WithCancel(context.Background())
	listening, ended := make(chan struct{}), make(chan error, 1)
	opt := Options{Node: world.node, Space: "default", Access: access, Secret: secret, Listen: socket, MaxConnections: 256,
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)), onListen: func() { close(listening) }}
	go func() { ended <- Run(ctx, opt) }()
	defer func() {
		cancel()
		if serr := <-ended; serr != nil && err == nil {
			code, err = 1, serr
		}
	}()
	select {
	case <-listening:
	case err := <-ended:
		ended <- err
		return 1, fmt.Errorf("the front ended: %w", err)
	case <-time.After(limit):
		return 1, fmt.Errorf("the front does not listen")
	}
	l, err := relay(socket)
	if err != nil {
		return 1, err
	}
	defer l.Close()
	world.endpoint = "http://" + l.Addr().String()
	world.conf = integration.NewS3Conf(integration.WithAccess(access), integration.WithSecret(secret), integration.WithRegion("us-east-1"),
		integration.WithEndpoint(world.endpoint), integration.WithPartSize(5<<20), integration.WithConcurrency(1))
	return m.Run(), nil
}

// startNode runs the program edged as it is built from this tree.
func startNode(dir string) (stop func(), err error) {
	binary := filepath.Join(dir, "edged")
	build := exec.Command("go", "build", "-o", binary, "./cmd/edged")
	build.Dir = "../.." // with the versions of the main module
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("build edged: %w", err)
	}
	cmd := exec.Command(binary, "run", "--data-dir", filepath.Join(dir, "data"), "--http", "127.0.0.1:0", "--https", "", "--control", "127.0.0.1:0", "--admin", "")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	timer := time.AfterFunc(limit, func() { cmd.Process.Kill() })
	defer timer.Stop()
	lines := bufio.NewScanner(out)
	for range 2 {
		if !lines.Scan() {
			cmd.Wait()
			return nil, fmt.Errorf("the node did not start")
		}
	}
	drained := make(chan struct{})
	go func() { // ends with the process
		io.Copy(io.Discard, out)
		close(drained)
	}()
	return func() {
		cmd.Process.Signal(syscall.SIGTERM)
		killer := time.AfterFunc(limit, func() { cmd.Process.Kill() })
		<-drained
		cmd.Wait()
		killer.Stop()
	}, nil
}

// relay listens at a free port and carries connections to a unix socket: the front does not tell which port it got.
func relay(socket string) (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() { // ends with the listener
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go carry(conn, socket)
		}
	}()
	return l, nil
}

func carry(conn net.Conn, socket string) {
	defer conn.Close()
	to, err := net.Dial("unix", socket)
	if err != nil {
		return
	}
	defer to.Close()
	var both sync.WaitGroup
	both.Go(func() {
		io.Copy(to, conn)
		to.(*net.UnixConn).CloseWrite()
	})
	both.Go(func() {
		io.Copy(conn, to)
		conn.(*net.TCPConn).CloseWrite()
	})
	both.Wait()
}

// newBucket makes a bucket of the test.
func newBucket(t *testing.T) (*s3.Client, *string) {
	t.Helper()
	name := bucketName(t)
	c := world.conf.GetClient()
	if _, err := c.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &name}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { emptyAway(t, c, &name) })
	return c, &name
}

// emptyAway deletes a bucket, which may be gone, and all that it holds: the suite looks at all buckets there are.
func emptyAway(t *testing.T, c *s3.Client, bucket *string) {
	ctx := context.WithoutCancel(t.Context())
	pages := s3.NewListObjectsV2Paginator(c, &s3.ListObjectsV2Input{Bucket: bucket})
	for pages.HasMorePages() {
		p, err := pages.NextPage(ctx)
		if err != nil {
			return // gone
		}
		for _, o := range p.Contents {
			c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: bucket, Key: o.Key})
		}
	}
	if _, err := c.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: bucket}); err != nil {
		t.Error(err)
	}
}
