// The cases of the lab: what each case needs, and how it is started.

package rig

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Options contains the options with which a case is started.
type Options struct {
	// Flags are passed to the main service of the case.
	Flags []string `json:"flags,omitempty"`
	// LimitRate and LimitBurst are the rate limit of the proxy in the case cards.
	LimitRate  int `json:"limit_rate,omitempty"`
	LimitBurst int `json:"limit_burst,omitempty"`
}

func (o Options) equal(other Options) bool {
	return slices.Equal(o.Flags, other.Flags) && o.LimitRate == other.LimitRate && o.LimitBurst == other.LimitBurst
}

// Case is a group of servers that `up` starts together.
type Case struct {
	Name, About string
	programs    []string // programs of other projects
	backing     []string
	start       func(context.Context, *launch, Options) error
}

// Cases lists all cases, in the order of `up all`.
var Cases = []Case{
	{"baseline", "net/http alone", nil, nil, startBaseline},
	{"apiserver", "gin, middlewares, users in MariaDB", nil, []string{"mariadb"}, startAPIServer},
	{"flashsale", "a list as JSON, orders on Redis", nil, []string{"redis"}, startFlashsale},
	{"ladder", "empty, Redis, SQL", nil, []string{"redis", "mariadb"}, startLadder},
	{"gateway", "JSON to gRPC before one ladder, both on one core", nil, []string{"redis", "mariadb"}, startGateway},
	{"gateway-pair", "nginx before two gateways, each with a ladder and a core of its own", []string{"nginx"}, []string{"redis", "mariadb"}, startGatewayPair},
	{"cards", "Node.js, and nginx with limit_req before it", []string{"node", "nginx"}, nil, startCards},
}

// backingServices lists the services that cases share, such as databases.
var backingServices = map[string]struct {
	programs []string
	start    func(context.Context, *launch) error
}{
	"redis":   {[]string{"redis-server"}, startRedis},
	"mariadb": {[]string{"mariadbd", "mariadb-install-db", "my_print_defaults"}, startMariaDB},
}

// Programs returns all programs of other projects that the cases need.
func Programs() []string {
	var all []string
	for _, c := range Cases {
		all = append(all, c.allPrograms()...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (c Case) allPrograms() []string {
	all := slices.Clone(c.programs)
	for _, name := range c.backing {
		all = append(all, backingServices[name].programs...)
	}
	return all
}

func findCase(name string) (Case, error) {
	names := make([]string, len(Cases))
	for i, c := range Cases {
		if c.Name == name {
			return c, nil
		}
		names[i] = c.Name
	}
	return Case{}, fmt.Errorf("there is no case %q: there are %s, and all", name, strings.Join(names, ", "))
}

// main starts the main service of a case. The flags of `up` come last and override
// earlier flags.
func (l *launch) main(ctx context.Context, o Options, program string, env []string, args ...string) error {
	line, err := l.service(ctx, program, program, env, append(args, o.Flags...)...)
	if err == nil {
		l.into.Addresses[program] = text(line, "url")
	}
	return err
}

func startBaseline(ctx context.Context, l *launch, o Options) error {
	return l.main(ctx, o, "baseline", nil)
}

func startAPIServer(ctx context.Context, l *launch, o Options) error {
	env, err := l.rig.mysqlEnv()
	if err != nil {
		return err
	}
	return l.main(ctx, o, "apiserver", []string{env},
		"--config", filepath.Join(l.rig.Home, "configs", "apiserver.yaml"),
		"--server.upload-dir", filepath.Join(l.rig.Cache, "uploads"))
}

func startFlashsale(ctx context.Context, l *launch, o Options) error {
	return l.main(ctx, o, "flashsale", []string{l.rig.redisEnv()})
}

// stores fills the table, and returns the environment variables with which a
// ladder reaches its stores.
func (l *launch) stores(ctx context.Context) ([]string, error) {
	if err := l.rig.seed(ctx); err != nil {
		return nil, err
	}
	env, err := l.rig.mysqlEnv()
	return []string{env, l.rig.redisEnv()}, err
}

func startLadder(ctx context.Context, l *launch, o Options) error {
	env, err := l.stores(ctx)
	if err != nil {
		return err
	}
	return l.main(ctx, o, "ladder", env)
}

// node starts a gateway and the ladder behind it on one core. Together they
// represent a node of a cluster.
func (l *launch) node(ctx context.Context, o Options, suffix string, core int, env []string) error {
	pin := fmt.Sprintf("--cpus=%d", core)
	ladder, err := l.service(ctx, "ladder"+suffix, "ladder", env, "--grpc-listen=127.0.0.1:0", pin)
	if err != nil {
		return err
	}
	gateway, err := l.service(ctx, "gateway"+suffix, "gateway", nil,
		append([]string{"--backends=" + text(ladder, "grpc"), pin}, o.Flags...)...)
	if err != nil {
		return err
	}
	l.into.Addresses["ladder"+suffix] = text(ladder, "url")
	l.into.Addresses["ladder"+suffix+"-grpc"] = text(ladder, "grpc")
	l.into.Addresses["gateway"+suffix] = text(gateway, "url")
	return nil
}

func startGateway(ctx context.Context, l *launch, o Options) error {
	env, err := l.stores(ctx)
	if err != nil {
		return err
	}
	return l.node(ctx, o, "", 0, env)
}

func startGatewayPair(ctx context.Context, l *launch, o Options) error {
	env, err := l.stores(ctx)
	if err != nil {
		return err
	}
	var gateways []string
	for i, suffix := range []string{"-1", "-2"} {
		if err := l.node(ctx, o, suffix, i%runtime.NumCPU(), env); err != nil {
			return err
		}
		gateways = append(gateways, strings.TrimPrefix(l.into.Addresses["gateway"+suffix], "http://"))
	}
	address, err := l.startNginx(ctx, "round-robin", roundRobin(gateways))
	l.into.Addresses["gateway-pair"] = address
	return err
}

func startCards(ctx context.Context, l *launch, o Options) error {
	node, err := findProgram("node")
	if err != nil {
		return err
	}
	var line map[string]any
	accessLog := filepath.Join(l.rig.Cache, "logs", "cards-access.log")
	if err := l.start(ctx, spec{
		name: "cards", path: node, patience: 30 * time.Second, ready: addressLine(&line),
		args: append([]string{filepath.Join(l.rig.Home, "cards", "server.js"), "--access-log", accessLog}, o.Flags...),
	}); err != nil {
		return err
	}
	l.into.Addresses["cards"] = text(line, "url")
	rate, burst := o.LimitRate, o.LimitBurst
	if rate == 0 {
		rate = 1000
	}
	if burst == 0 {
		burst = 200
	}
	l.into.Addresses["proxy"], err = l.startNginx(ctx, "proxy", limitingProxy(text(line, "listen"), rate, burst))
	return err
}
