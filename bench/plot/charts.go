package main

import (
	"fmt"
	"image/color"
	"math"
	"path/filepath"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const (
	width     = 11 * vg.Inch
	rowHeight = 0.24 * vg.Inch
	mostRows  = 400 // of a picture; more nobody reads
)

var (
	plain  = color.RGBA{R: 60, G: 90, B: 150, A: 255}
	met    = color.RGBA{R: 20, G: 130, B: 60, A: 255}
	missed = color.RGBA{R: 200, G: 40, B: 30, A: 255}
)

// row is a plotter of one result on its line.
type row struct {
	result
	y float64
}

// Plot implements plot.Plotter: the range as a line, the median as a dot, the target as a stroke.
func (r row) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	colour := plain
	if r.Met != nil {
		colour = missed
		if *r.Met {
			colour = met
		}
	}
	at, half := y(r.y), vg.Points(3)
	line := draw.LineStyle{Color: colour, Width: vg.Points(1.5)}
	c.StrokeLine2(line, x(r.bottom()), at, x(r.High), at)
	for _, end := range []float64{r.bottom(), r.High} {
		c.StrokeLine2(line, x(end), at-half, x(end), at+half)
	}
	c.DrawGlyph(draw.GlyphStyle{Color: colour, Radius: vg.Points(3), Shape: draw.CircleGlyph{}}, vg.Point{X: x(r.Value), Y: at})
	if r.Target != nil && *r.Target > 0 {
		c.StrokeLine2(draw.LineStyle{Color: color.Black, Width: vg.Points(2)}, x(*r.Target), at-2*half, x(*r.Target), at+2*half)
	}
}

// DataRange implements plot.DataRanger.
func (r row) DataRange() (xmin, xmax, ymin, ymax float64) {
	xmin, xmax = r.bottom(), r.High
	if r.Target != nil && *r.Target > 0 {
		xmin, xmax = min(xmin, *r.Target), max(xmax, *r.Target)
	}
	return xmin, xmax, r.y, r.y
}

// rows draws one line for each result, the first one on top. Nothing to draw is no picture.
func rows(out, file, title, unit string, results []result) error {
	if len(results) == 0 {
		return nil
	}
	results = results[:min(len(results), mostRows)]
	p := plot.New()
	p.Title.Text, p.X.Label.Text = title, unit+" (logarithmic)"
	p.Title.TextStyle.Font.Size, p.Title.Padding = vg.Points(12), vg.Points(8)
	names := make([]string, len(results))
	for i, r := range results {
		y := len(results) - 1 - i
		names[y] = fmt.Sprintf("  %s: %s  %s", r.Part, shorten(r.Name, 52), short(r.Value))
		p.Add(row{r, float64(y)})
	}
	p.NominalY(names...)
	p.Y.Min, p.Y.Max = -0.7, float64(len(results))-0.3
	logarithmic(&p.X)
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.Gray{Y: 235}, color.Gray{Y: 205}
	p.Add(grid)
	return save(p, width, vg.Length(len(results))*rowHeight+1.3*vg.Inch, out, file)
}

// courses draws the ratios of a part over the runs: a line for each, with the range of each run.
func courses(out, file, title, part string, history []document) error {
	p := plot.New()
	p.Title.Text, p.Y.Label.Text = title, "ratio (logarithmic)"
	var runs, names []string
	series := map[string]*course{}
	for _, d := range history {
		measured := false
		for _, r := range d.pick(func(r result) bool { return r.Ratio && r.Part == part }) {
			if series[r.Name] == nil {
				if series[r.Name] = new(course); len(names) == mostRows {
					continue
				}
				names = append(names, r.Name)
			}
			series[r.Name].add(float64(len(runs)), r)
			measured = true
		}
		if measured {
			runs = append(runs, d.Commit[:min(8, len(d.Commit))]+"\n"+d.Date.Format("2 Jan"))
		}
	}
	step := min(0.07, 0.5/float64(len(names))) // beside each other, so that no range hides another
	for i, name := range names {
		for j := range series[name].XYs {
			series[name].XYs[j].X += step * (float64(i) - float64(len(names)-1)/2)
		}
		if err := series[name].draw(p, i, fmt.Sprintf("%s  %s", shorten(name, 60), short(series[name].XYs[len(series[name].XYs)-1].Y))); err != nil {
			return err
		}
	}
	p.NominalX(runs...)
	p.X.Min, p.X.Max = -0.5, float64(len(runs))-0.5
	logarithmic(&p.Y)
	p.Add(plotter.NewGrid())
	// The legend stands above the data, in room made for it.
	p.Legend.Top, p.Legend.Left, p.Legend.Padding = true, true, vg.Points(1)
	height := 3.5*vg.Inch + vg.Length(len(names))*0.2*vg.Inch
	share := float64(vg.Length(len(names)) * 0.2 * vg.Inch / height)
	p.Y.Max *= math.Pow(p.Y.Max/p.Y.Min, share/(1-share)*1.1)
	return save(p, width, height, out, file)
}

// course is one ratio over the runs.
type course struct {
	plotter.XYs
	plotter.YErrors
}

func (c *course) add(x float64, r result) {
	c.XYs = append(c.XYs, plotter.XY{X: x, Y: r.Value})
	c.YErrors = append(c.YErrors, struct{ Low, High float64 }{r.Value - r.bottom(), r.High - r.Value})
}

func (c *course) draw(p *plot.Plot, i int, name string) error {
	line, points, err := plotter.NewLinePoints(c.XYs)
	if err != nil {
		return err
	}
	bars, err := plotter.NewYErrorBars(c)
	if err != nil {
		return err
	}
	line.Color, points.Color, bars.Color = plotutil.Color(i), plotutil.Color(i), plotutil.Color(i)
	points.Shape = plotutil.Shape(i)
	p.Add(line, points, bars)
	p.Legend.Add(name, line, points)
	return nil
}

// logarithmic gives an axis a scale of powers, from a bit below the lowest value to a bit above the highest.
func logarithmic(a *plot.Axis) {
	a.Min, a.Max = a.Min/1.15, a.Max*1.15
	a.Scale = plot.LogScale{}
	a.Tick.Marker = plot.TickerFunc(func(low, high float64) (ticks []plot.Tick) {
		steps := []float64{1, 2, 5}
		if high/low < 10 {
			steps = []float64{1, 1.5, 2, 3, 4, 5, 7}
		} else if high/low > 1000 {
			steps = []float64{1}
		}
		for decade := math.Pow(10, math.Floor(math.Log10(low))); decade <= high; decade *= 10 {
			for _, step := range steps {
				if v := step * decade; v >= low && v <= high {
					ticks = append(ticks, plot.Tick{Value: v, Label: short(v)})
				}
			}
		}
		return ticks
	})
}

func save(p *plot.Plot, w, h vg.Length, out, file string) error {
	path := filepath.Join(out, file)
	if err := p.Save(w, h, path); err != nil {
		return err
	}
	fmt.Println("drawn:", file)
	return nil
}

func short(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }

func shorten(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}
