/* schedule_memory: when parameters come.
 *
 * in:  what readers ask for, and when their banks are free.     out: when memories and blocks are
 * dealt out. How. The loader deals beats out memory after memory, each waiting for its bank, which
 * the kernel frees when it begins the iteration before; row blocks have readers of their own.
 * Memory is followed burst by burst: each is asked for when its reader's FIFO has room, and they
 * are answered one after the other, at the rate of the memory. Readers that share memory are heard
 * in the order of time, as what they ask for is known.
 * example: two frames in flight read a layer's parameters once for both; where that takes longer
 *     than their tokens, memory is the bound.
 * cost: O(bursts); of very large matrices some are taken as one.
 */
enum { MLO_LOADER_BEATS = 512, MLO_LOADER_BURST = 64, MLO_BURSTS_MANY = 64 };
/* Cycles, as they are in the Verilog: from the first input beat to the loader's first request,
 * from a beat that memory gives to where it is dealt out, and to the request for which it made
 * room (readers that share memory: one more); how much earlier than that the first request is where ids are the input
 * of what is in front of a loop; how much later than behind a burst the next request is behind the last one of a
 * reader's command, for beats that lie together. Of the simulated memory: how long it is there before the first input
 * beat. */
enum {
    MLO_READ_BEGINS = 2,
    MLO_READ_BEFORE = 1,
    MLO_READ_WAY = 2,
    MLO_READ_BACK = 1,
    MLO_READ_ANEW = 1,
    MLO_MEMORY_GATHERS = 43
};

/* May what a reader asks for at `when` be answered? Requests are, in the order of time, as memory
 * takes them; the next one is noted. */
static int mlo_is_heard(mlo_schedule *s, int64_t when) {
    if (when <= s->bus->now) return 1;
    s->bus->next = mlo_min(s->bus->next, when);
    return 0;
}

/* A cycle, or when memory is done with what it serves (in cycles x rate), if that is later. */
static int64_t mlo_memory_from(const mlo_schedule *s, int64_t cycle, int64_t served) {
    const int64_t rate = s->c->rate;
    return served <= cycle * rate ? cycle : (served + rate - 1) / rate;
}

/* Memory answers requests one after the other: here with `beats` behind those that a reader got,
 * the first of which can come at `from`. After a pause four come at once, where there is a rate to
 * keep (mlo_sim_ram's credit). */
static mlo_burst mlo_memory_gives(mlo_schedule *s, int64_t got, int64_t beats, int64_t from) {
    const int64_t rate = s->c->rate;
    const int64_t begin = mlo_max(from, s->bus->given);
    const int64_t saved = rate < 256 ? 4 * 256 - 2 * rate : 0;
    s->bus->served = mlo_max(s->bus->served, begin * rate - saved) + beats * 256;
    s->bus->given = mlo_memory_from(s, begin + beats, s->bus->served);
    const mlo_burst come = { got, got + beats, begin, s->bus->served };
    return come;
}

/* Could a reader not go on when it last tried, has nothing become known since, and is its request not heard yet? */
static int mlo_fetch_rests(mlo_schedule *s, const mlo_fetch *r) {
    if (r->rests != s->bus->news + 1 || (r->waits && r->waits <= s->bus->now)) return 0;
    if (r->waits) s->bus->next = mlo_min(s->bus->next, r->waits);
    return 1;
}

/* When beat x of those that a reader asked for has come: beats of a burst come at the memory's rate. */
static int64_t mlo_fetch_has(const mlo_schedule *s, const mlo_fetch *r, int64_t x) {
    if (x <= 0 || x > r->got) return 0;
    const int64_t oldest = mlo_max(0, r->bursts - MLO_READS_KEPT);
    int64_t k = mlo_max(oldest, r->bursts - 1 - (r->got - x) / r->unit);
    while (k > oldest && r->burst[k % MLO_READS_KEPT].from >= x) k--;
    const mlo_burst *b = &r->burst[k % MLO_READS_KEPT];
    return mlo_memory_from(s, b->begin + x - b->from, b->served - (b->beats - x) * 256);
}

static mlo_until mlo_fetch_last(const mlo_fetch *r) {
    const mlo_until none = { 0, 0, 0, 0 };
    return r->portions ? r->dealt[(r->portions - 1) % MLO_READS_KEPT] : none;
}

/* The next portion is dealt out to a bank that is free from `open` on, as it comes. */
static mlo_until mlo_fetch_deal(
    const mlo_schedule *s, const mlo_fetch *r, int64_t beats, int64_t open) {
    const mlo_until last = mlo_fetch_last(r);
    const int64_t begin = mlo_max(open, last.when), end = last.beats + beats;
    const mlo_until now = { last.beats, end, begin,
        mlo_max(begin + beats, mlo_fetch_has(s, r, end)) };
    return now;
}
static int64_t mlo_fetch_deals(const mlo_schedule *s, mlo_fetch *r, int64_t beats, int64_t open) {
    const mlo_until now = mlo_fetch_deal(s, r, beats, open);
    r->dealt[r->portions++ % MLO_READS_KEPT] = now;
    return now.when;
}

/* When a reader has dealt out beat x; its next portion has `beats`, and a bank from `open` on.
 * MLO_NOT_YET if that is not known. */
static int64_t mlo_fetch_dealt(
    const mlo_schedule *s, const mlo_fetch *r, int64_t x, int64_t beats, int64_t open) {
    int64_t k = r->portions - 1;
    mlo_until of = mlo_fetch_last(r);
    if (x <= 0) return 0;
    if (x > of.beats) {
        if (open == MLO_NOT_YET || x > of.beats + beats) return MLO_NOT_YET;
        of = mlo_fetch_deal(s, r, beats, open);
    } else
        while (x <= of.from && k > 0 && k > r->portions - MLO_READS_KEPT)
            of = r->dealt[--k % MLO_READS_KEPT];
    return x <= of.from ? of.begin : mlo_max(of.begin + x - of.from, mlo_fetch_has(s, r, x));
}

/* When a reader can ask, if beat x must have left its FIFO first. It does as it comes, or when the
 * beat two before is dealt out: two wait in mlo_router's skid. MLO_NOT_YET if that is not known. */
static int64_t mlo_fetch_room(
    const mlo_schedule *s, const mlo_fetch *r, int64_t x, int64_t beats, int64_t open) {
    const int64_t dealt = mlo_fetch_dealt(s, r, x - 2, beats, open);
    const int64_t back = MLO_READ_BACK + s->shared;
    return x <= 0              ? 0
        : dealt == MLO_NOT_YET ? dealt
                               : mlo_max(mlo_fetch_has(s, r, x), dealt + 2) + back;
}

/* The longest burst, in beats, to which all are aligned: within 4 KB. Of `beats` in one go that
 * are very many, up to half a FIFO's worth is taken as one. */
static int64_t mlo_burst_unit(const mlo_core *c, int64_t beats) {
    int64_t unit = mlo_min(MLO_LOADER_BURST, 4096 * 8 / c->axi_bits);
    while (unit < MLO_LOADER_BEATS / 2 && beats / unit > MLO_BURSTS_MANY) unit *= 2;
    return unit;
}

/* When a reader that has just asked can ask again: it takes two steps to a burst, three to a command's first one, and
 * goes on with the next while what it asked for waits for its turn. */
static void mlo_fetch_goes_on(const mlo_schedule *s, mlo_fetch *r, int64_t anew) {
    r->asks = mlo_max(r->due + 2 + anew, s->bus->asked + 1);
}

/* A reader asks for its next burst, of at most `left` beats at `address` in the image, when its
 * FIFO has room. 0: not yet. */
static int64_t mlo_fetch_asks(
    mlo_schedule *s, mlo_fetch *r, int64_t address, int64_t left, int64_t beats, int64_t open) {
    const int64_t burst = mlo_min(left, r->unit - address % r->unit);
    const int64_t room = mlo_fetch_room(s, r, r->got + burst - r->depth, beats, open);
    int64_t *over = &s->bus->over[s->bus->requests % MLO_REQUESTS_MOST];
    const int64_t asks = mlo_max(
        mlo_max(r->asks, room), mlo_max(s->bus->asked, s->shared ? *over : 0) + 1);
    r->waits = 0;
    if (room == MLO_NOT_YET) return 0;
    r->due = mlo_max(r->asks, room);
    if (!mlo_is_heard(s, asks)) {
        r->waits = asks;
        return 0;
    }
    r->burst[r->bursts++ % MLO_READS_KEPT] = mlo_memory_gives(
        s, r->got, burst, asks + s->c->read_latency + MLO_READ_WAY);
    *over = s->bus->given - MLO_READ_WAY;
    s->bus->requests++;
    r->got += burst;
    s->bus->asked = asks;
    mlo_fetch_goes_on(s, r, 0);
    const int tail = s->loop && s->loop->front && s->loop->front != s;
    s->bus->side = tail ? 2 : s->loop != NULL || r == &s->table;
    mlo_schedule *of = s->head && r == &s->table ? s->head : s;
    of->turn = r->port;
    of->picks = asks + 1;
    return burst;
}

/* Tells of an element's parameters, a memory at a time. */
static void mlo_loaded(const mlo_schedule *s, int memory, int64_t load) {
    int i = 0;
    if (!s->seen || load >= s->loads) return;
    while (s->first_memory[i + 1] <= memory) i++;
    const mlo_moment what = { i, load % s->c->scan.iterations,
        s->job[load / s->c->scan.iterations].frame, -1, mlo_fetch_last(&s->loader).begin,
        mlo_fetch_last(&s->loader).when };
    s->seen(s->user, &what);
}

/* Is this memory read in this load? Resident ones are in the first loads alone. */
static int mlo_loader_reads(const mlo_schedule *s, int64_t load, int64_t memory) {
    return load < s->c->scan.iterations || !s->resident[memory];
}

/* When the bank of the memory that the loader deals out next is free. */
static int64_t mlo_loader_bank(const mlo_schedule *s) {
    const int64_t at = s->loaded / s->n_memory, memory = s->loaded % s->n_memory;
    if (at < 2 || s->resident[memory]) return 0;
    return s->begun[memory] < at ? MLO_NOT_YET : s->freed[memory][(at - 1) & 3] + 1;
}

/* The loader deals out its next memory. 0: it is not known when. */
static int mlo_loader_deals(mlo_schedule *s) {
    const int64_t at = s->loaded / s->n_memory, bank = mlo_loader_bank(s);
    const int memory = (int)(s->loaded % s->n_memory);
    if (mlo_loader_reads(s, at, memory)) {
        if (bank == MLO_NOT_YET
            || mlo_fetch_last(&s->loader).beats + s->beats[memory] > s->loader.got)
            return 0;
        s->ready[at % s->kept * s->n_memory + memory] = mlo_fetch_deals(
            s, &s->loader, s->beats[memory], bank);
        mlo_loaded(s, memory, at);
    }
    s->loaded++;
    return 1;
}

/* On to the memory behind the one that the loader asks for. */
static void mlo_loader_passes(mlo_schedule *s) {
    if (++s->memory == s->n_memory) {
        s->memory = 0;
        s->load++;
    }
}

/* Beats that lie together from the one on that the loader asks for, as far as a burst needs: to
 * the end of a round of all iterations at most. */
static int64_t mlo_loader_together(const mlo_schedule *s) {
    const int64_t round = s->load / s->c->scan.iterations;
    int64_t beats = -s->beat, load = s->load, k = s->memory;
    while (beats < MLO_LOADER_BURST && load / s->c->scan.iterations == round
        && mlo_loader_reads(s, load, k)) {
        beats += s->beats[k];
        k = (k + 1) % s->n_memory;
        load += !k;
    }
    return beats;
}

/* The loader asks for its next burst. 0: not yet. */
static int mlo_loader_asks(mlo_schedule *s) {
    int64_t address = s->origin + s->beat;
    for (int n = s->n_memory; n && !mlo_loader_reads(s, s->load, s->memory); n--)
        mlo_loader_passes(s);
    if (!mlo_loader_reads(s, s->load, s->memory)) return 0;
    for (int k = 0; k < s->n_memory; k++)
        address += s->beats[k] * (s->load % s->c->scan.iterations + (k < s->memory));
    const int64_t burst = mlo_fetch_asks(s, &s->loader, address, mlo_loader_together(s),
        s->beats[s->loaded % s->n_memory], mlo_loader_bank(s));
    for (s->beat += burst; s->beat >= s->beats[s->memory]; mlo_loader_passes(s))
        s->beat -= s->beats[s->memory];
    const int round = !s->beat && !s->memory && s->load % s->c->scan.iterations == 0;
    if (burst && (round || !mlo_loader_reads(s, s->load, s->memory)))
        mlo_fetch_goes_on(s, &s->loader, MLO_READ_ANEW);
    return burst > 0;
}

/* The loader asks and deals out as far as is known, a bank further than the run. 0: it does not. */
static int mlo_loader_goes_on(mlo_schedule *s) {
    int any = 0;
    if (mlo_fetch_rests(s, &s->loader)) return 0;
    while (s->n_memory
        && ((s->loaded < (s->loads + 1) * s->n_memory && mlo_loader_deals(s))
            || mlo_loader_asks(s)))
        any = 1;
    s->bus->news += any;
    s->loader.rests = s->bus->news + 1;
    return any;
}

/* When memory k of iteration `load` is there; MLO_NOT_YET if a bank on the way to it is not known
 * to be free. */
static int64_t mlo_loader_ready(mlo_schedule *s, int k, int64_t load) {
    while (s->loaded <= load * s->n_memory + k)
        if (!mlo_loader_goes_on(s)) return MLO_NOT_YET;
    if (s->resident[k] == MLO_ONE_FOR_ALL && load) return 0;
    return mlo_loader_reads(s, load, k) ? s->ready[load % s->kept * s->n_memory + k] : 0;
}

/* Parameters of an element's token that begins an iteration: when its memories are there. 0: not
 * known yet. */
static int mlo_parameters(
    mlo_schedule *s, int i, const mlo_place *p, int64_t ready[MLO_UNIT_MEMORIES]) {
    for (int k = 0; k < MLO_UNIT_MEMORIES; k++) ready[k] = 0;
    for (int k = 0; k < s->first_memory[i + 1] - s->first_memory[i] && p->first; k++)
        if ((ready[k] = mlo_loader_ready(s, s->first_memory[i] + k, p->load)) == MLO_NOT_YET)
            return 0;
    return 1;
}

/* Memory k of the element moves to the bank of this iteration. */
static void mlo_begins(mlo_schedule *s, int i, int k, const mlo_place *p, int64_t when) {
    if (!p->first || k >= s->c->element[i].unit.n_memory) return;
    s->freed[s->first_memory[i] + k][p->load & 3] = when;
    s->begun[s->first_memory[i] + k] = p->load + 1;
}
