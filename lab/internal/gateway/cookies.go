// Reads the caller's session from the Cookie header, in two ways that give the
// same result. The expensive way is typical of old gateways: each feature reads
// its cookie through a helper, and the helper parses the whole header again with
// a newly compiled pattern. The cheap way parses the header once and takes the
// needed values.

package gateway

import (
	"net/url"
	"regexp"
	"strings"
)

// session contains the values that the gateway takes from the cookies.
type session struct {
	id, user, locale, region, variant string
}

type cookieReader func(header string) session

var cookieReaders = map[string]cookieReader{
	"expensive": readCookiesExpensively,
	"cheap":     readCookiesCheaply,
}

func readCookiesExpensively(header string) session {
	return session{
		id:      cookieMap(header)["sid"],
		user:    cookieMap(header)["user"],
		locale:  cookieMap(header)["locale"],
		region:  cookieMap(header)["region"],
		variant: cookieMap(header)["variant"],
	}
}

// cookieMap parses all cookies. If two have the same name, the first one counts.
func cookieMap(header string) map[string]string {
	pair := regexp.MustCompile(`(?:^|;)\s*([^=;\s]+)\s*=\s*([^;]*?)\s*(?:;|$)`)
	cookies := map[string]string{}
	for {
		at := pair.FindStringSubmatchIndex(header)
		if at == nil {
			return cookies
		}
		name, value := header[at[2]:at[3]], header[at[4]:at[5]]
		if _, seen := cookies[name]; !seen {
			cookies[name] = unescape(value)
		}
		header = header[at[5]:]
	}
}

func readCookiesCheaply(header string) session {
	var s session
	var seen [5]bool
	for header != "" {
		var part string
		part, header, _ = strings.Cut(header, ";")
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			continue
		}
		var index int
		var into *string
		switch strings.TrimSpace(name) {
		case "sid":
			index, into = 0, &s.id
		case "user":
			index, into = 1, &s.user
		case "locale":
			index, into = 2, &s.locale
		case "region":
			index, into = 3, &s.region
		case "variant":
			index, into = 4, &s.variant
		default:
			continue
		}
		if !seen[index] {
			seen[index] = true
			*into = unescape(strings.TrimSpace(value))
		}
	}
	return s
}

func unescape(value string) string {
	if !strings.Contains(value, "%") {
		return value
	}
	if plain, err := url.PathUnescape(value); err == nil {
		return plain
	}
	return value
}
