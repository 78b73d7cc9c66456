// Starts a private nginx: as the rate-limiting proxy of the case cards, or as the
// round-robin load balancer in front of two gateways.

package rig

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const nginxFrame = `worker_processes 1;
%[1]sdaemon off;
pid nginx.pid;
error_log stderr warn;
events { worker_connections 4096; }
http {
	access_log off;
	client_body_temp_path body;
	proxy_temp_path proxy;
	fastcgi_temp_path fastcgi;
	uwsgi_temp_path uwsgi;
	scgi_temp_path scgi;
	keepalive_requests 1000000;
	proxy_http_version 1.1;
	proxy_set_header Connection "";
	proxy_set_header Host $host;
%[2]s
}
`

// startNginx starts nginx and returns its address. `http` returns the text of
// nginx's http block for a port to listen on.
func (l *launch) startNginx(ctx context.Context, name string, http func(port int) string) (string, error) {
	path, err := findProgram("nginx")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(l.rig.Cache, "nginx-"+l.name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;\n" // another user could not enter the folder
	}
	var address string
	err = l.onFreePort(func(port int) error {
		address = fmt.Sprintf("127.0.0.1:%d", port)
		config := filepath.Join(dir, "nginx.conf")
		if err := os.WriteFile(config, fmt.Appendf(nil, nginxFrame, user, http(port)), 0o600); err != nil {
			return err
		}
		return l.start(ctx, spec{
			// With "stderr" as the first log, nginx does not write its system-wide log.
			name: name, path: path, args: []string{"-e", "stderr", "-p", dir + "/", "-c", config},
			dir: dir, patience: 20 * time.Second,
			ready: func(context.Context, string) (bool, error) {
				conn, err := net.DialTimeout("tcp", address, time.Second)
				if err != nil {
					return false, nil
				}
				return true, conn.Close()
			},
		})
	})
	return "http://" + address, err
}

// jsonError returns an nginx location that responds with a JSON error like all
// services of the lab.
func jsonError(status int, message string) string {
	return fmt.Sprintf("\t\terror_page %[1]d @error%[1]d;\n\t\tlocation @error%[1]d { internal; default_type application/json; "+
		"return %[1]d '{\"error\":{\"status\":%[1]d,\"message\":\"%[2]s\"}}'; }\n", status, message)
}

// limitingProxy returns the http block of a proxy that limits the requests a
// second of each client address.
func limitingProxy(backend string, perSecond, burst int) func(int) string {
	return func(port int) string {
		return fmt.Sprintf(`	limit_req_zone $binary_remote_addr zone=client:1m rate=%[1]dr/s;
	limit_req_status 429;
	limit_req_log_level info;
	upstream cards { server %[2]s; keepalive 64; }
	server {
		listen 127.0.0.1:%[3]d backlog=4096;
%[4]s		location / { limit_req zone=client burst=%[5]d nodelay; proxy_pass http://cards; }
	}`, perSecond, backend, port, jsonError(429, "too many requests: slow down")+jsonError(502, "the service behind this proxy does not answer"), burst)
	}
}

// roundRobin returns the http block of a proxy that uses the servers in turn.
func roundRobin(servers []string) func(int) string {
	return func(port int) string {
		var list strings.Builder
		for _, server := range servers {
			fmt.Fprintf(&list, "server %s; ", server)
		}
		return fmt.Sprintf(`	upstream gateways { %skeepalive 128; }
	server {
		listen 127.0.0.1:%d backlog=4096;
%s		location / { proxy_pass http://gateways; }
	}`, list.String(), port, jsonError(502, "no gateway behind this proxy answers"))
	}
}
