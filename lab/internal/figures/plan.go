// The plan of the measurements: groups of variants that differ in one switch.

package figures

import "plimsoll.dev/lab/internal/rig"

// Variant is a case with its options, and the address and path to load.
type Variant struct {
	Name    string
	Case    string
	Options rig.Options
	Address string // the key of the address to load
	Path    string
}

// Group is a set of variants that get the same load in turn. The first variant of
// each group is the baseline server.
type Group struct {
	Name     string
	Load     Load
	Variants []Variant
}

func baseline(flags ...string) Variant {
	name := "baseline"
	for _, flag := range flags {
		name += " " + flag
	}
	return Variant{name, "baseline", rig.Options{Flags: flags}, "baseline", "/healthz"}
}

func variant(name, caseName, path string, flags ...string) Variant {
	return Variant{name, caseName, rig.Options{Flags: flags}, caseName, path}
}

func cards(name, address string, o rig.Options) Variant {
	return Variant{name, "cards", o, address, "/pick"}
}

// ladderBehind is the ladder behind a gateway, loaded directly without the
// gateway.
func ladderBehind(name, path string) Variant {
	v := variant(name, "gateway", path)
	v.Address = "ladder"
	return v
}

// cookies is a Cookie header as a browser would send it.
const cookies = "Cookie: theme=dark; sid=4f3c2b1a0d9e8f7a; user=player%2017; locale=en_GB; region=eu; variant=b; seen=1; consent=all"

// api is the API server with these flags, and without metrics and profiles.
func api(name string, flags ...string) Variant {
	return variant(name, "apiserver", "/healthz",
		append([]string{"--feature.metrics=false", "--feature.profiling=false"}, flags...)...)
}

// Plan returns all groups of the lab's table. `seconds` is the duration of a run.
func Plan(seconds int) []Group {
	load := func(connections int, headers ...string) Load { return Load{connections, seconds, headers} }
	return []Group{
		{"apiserver", load(50), []Variant{
			baseline(),
			api("no middleware", "--server.middlewares=none"),
			api("all but logger and dump", "--server.middlewares=recovery,requestid,context,nocache,secure,cors"),
			api("logger alone", "--server.middlewares=logger"),
			api("dump alone", "--server.middlewares=dump"),
			api("all"),
			api("all, log.level=error", "--log.level=error"),
			api("all, log to stderr and a second file", "--log.output-paths=stderr,/dev/null"),
			api("all, server.mode=debug", "--server.mode=debug"),
			variant("all, metrics on", "apiserver", "/healthz", "--feature.metrics=true"),
		}},
		{"flashsale", load(50), []Variant{
			baseline(),
			variant("reflect", "flashsale", "/event/list", "--json=reflect"),
			variant("generated", "flashsale", "/event/list", "--json=generated"),
			variant("reflect, keepalive off", "flashsale", "/event/list", "--json=reflect", "--keepalive=off"),
			variant("generated, keepalive off", "flashsale", "/event/list", "--json=generated", "--keepalive=off"),
			baseline("--keepalive=off"),
		}},
		{"ladder", load(50), []Variant{
			baseline(),
			variant("/empty", "ladder", "/empty"),
			variant("/redis, pool 100", "ladder", "/redis"),
			variant("/redis, pool 1", "ladder", "/redis", "--redis-pool-size=1"),
			variant("/redis, pool 100, max idle 1", "ladder", "/redis", "--redis-max-idle=1"),
		}},
		// These runs are longer, because a query takes a large part of a second.
		{"ladder, SQL", Load{Connections: 8, Seconds: 3 * seconds}, []Variant{
			baseline(),
			variant("/sql, index on", "ladder", "/sql"),
			variant("/sql, index off", "ladder", "/sql", "--index=off"),
			variant("/sql, index on, max open 1", "ladder", "/sql", "--sql-max-open=1"),
		}},
		{"ladder, SQL, one connection", Load{Connections: 1, Seconds: 2 * seconds}, []Variant{
			baseline(),
			variant("/sql, index on", "ladder", "/sql"),
			variant("/sql, index off", "ladder", "/sql", "--index=off"),
		}},
		{"gateway", load(10, cookies), []Variant{
			baseline(),
			ladderBehind("no gateway: the ladder on the same core", "/empty"),
			variant("pool 1, cookies expensive", "gateway", "/empty", "--pool-size=1", "--cookies=expensive"),
			variant("pool 10, cookies expensive", "gateway", "/empty", "--pool-size=10", "--cookies=expensive"),
			variant("pool 10, cookies cheap", "gateway", "/empty", "--pool-size=10", "--cookies=cheap"),
			variant("two gateways and back ends, pool 10, cheap", "gateway-pair", "/empty", "--pool-size=10", "--cookies=cheap"),
		}},
		{"cards", load(50), []Variant{
			baseline(),
			cards("1 worker", "cards", rig.Options{Flags: []string{"--workers=1"}}),
			cards("2 workers", "cards", rig.Options{Flags: []string{"--workers=2"}}),
			cards("2 workers behind nginx, no effective limit", "proxy", rig.Options{LimitRate: 1000000, LimitBurst: 100000}),
			cards("2 workers behind nginx, 1000 requests/s a client", "proxy", rig.Options{LimitRate: 1000, LimitBurst: 200}),
		}},
	}
}
