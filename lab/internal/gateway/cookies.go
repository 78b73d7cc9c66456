// Reading the caller's session from the Cookie header, in two ways that give
// the same result. The expensive one is what grows in a gateway over the
// years: each concern fetches "its" cookie through a convenient helper, and
// the helper parses the whole header anew with a pattern compiled on the spot.
// The cheap one walks the header once and cuts out what is wanted.

package gateway

import (
	"net/url"
	"regexp"
	"strings"
)

// session is what the gateway wants from the cookies.
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

// cookieMap parses all cookies; of two with the same name the first counts.
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
