// Package flashsale is a flash-sale service. It has a list of sale events that
// all clients read, and orders that must never sell more than the stock.
package flashsale

import (
	"fmt"
	"time"
)

//go:generate go run -C ../../tools github.com/mailru/easyjson/easyjson -no_std_marshalers ../internal/flashsale/catalogue.go

// The size of the catalogue. Its list has about 8 KB of JSON.
const (
	eventCount   = 10
	goodsInEvent = 10
)

// EventList is the answer of /event/list.
//
//easyjson:json
type EventList struct {
	Total  int     `json:"total"`
	Events []Event `json:"events"`
}

// Event is one sale event with its goods.
type Event struct {
	ID     int       `json:"id"`
	Title  string    `json:"title"`
	Starts time.Time `json:"starts_at"`
	Ends   time.Time `json:"ends_at"`
	Goods  []Good    `json:"goods"`
}

// Good is one product on sale.
type Good struct {
	ID        int    `json:"id"`
	Name      string `json:"name"`
	Price     int    `json:"price_cents"`
	SalePrice int    `json:"sale_price_cents"`
}

// NewCatalogue creates the events, which are the same at every start.
func NewCatalogue() EventList {
	day := time.Date(2030, 1, 1, 10, 0, 0, 0, time.UTC)
	list := EventList{Total: eventCount}
	for e := 1; e <= eventCount; e++ {
		event := Event{
			ID:     e,
			Title:  fmt.Sprintf("Sale %d", e),
			Starts: day.AddDate(0, 0, e-1),
			Ends:   day.AddDate(0, 0, e-1).Add(2 * time.Hour),
		}
		for g := 1; g <= goodsInEvent; g++ {
			price := 1000*e + 137*g
			event.Goods = append(event.Goods, Good{
				ID:        e*100 + g,
				Name:      fmt.Sprintf("Good %d of sale %d", g, e),
				Price:     price,
				SalePrice: price / 2,
			})
		}
		list.Events = append(list.Events, event)
	}
	return list
}

// has returns whether the good is on sale in the event.
func (l EventList) has(event, good int) bool {
	for _, e := range l.Events {
		if e.ID != event {
			continue
		}
		for _, g := range e.Goods {
			if g.ID == good {
				return true
			}
		}
	}
	return false
}
