/* keys: all the metadata that mlo writes into models, which users read in metadata_props.
 *
 * out: mlo_key_*. The comment at each says on what it is written, and what its value means.
 *
 * invariant: a key is spelled here and nowhere else.
 * example: mlo_meta_int(n, mlo_key_pe, 1).
 */
/* a model: the last stage done */
static const char mlo_key_stage[] = "mlo.stage";
/* a model (JSON): where its external data lie */
static const char mlo_key_data_dir[] = "mlo.data_dir";
/* a model: tokens that the cache of its core is to hold: --context */
static const char mlo_key_context[] = "mlo.context";
/* a model: its numbers were integers before quantize, and its inputs are to be: 1 */
static const char mlo_key_integers[] = "mlo.integers";
/* a model: its loop has shapes alone, the numbers in it are nobody's: --sketch */
static const char mlo_key_sketch[] = "mlo.sketch";
/* a tensor (JSON): of the bytes it had in its file */
static const char mlo_key_digest[] = "mlo.digest";
/* a model: what extract chose: hierarchy or repeats, for --report and roll */
static const char mlo_key_extract[] = "mlo.extract";
/* a node: the module it is in: encoder/encoder.layer.3/.. */
static const char mlo_key_scope[] = "mlo.scope";
/* a node: a scope that was inferred: from which neighbours */
static const char mlo_key_scope_from[] = "mlo.scope_from";
/* a node: which loop it is to be in */
static const char mlo_key_loop[] = "mlo.loop";
/* a node: of which instance of the body it is */
static const char mlo_key_instance[] = "mlo.instance";
/* a node: which node of the body it is */
static const char mlo_key_position[] = "mlo.position";
/* a Scan: how often it runs */
static const char mlo_key_iterations[] = "mlo.iterations";
/* a Scan: the scopes of its iterations, in order */
static const char mlo_key_instances[] = "mlo.instances";
/* a kernel: bits of its result, where they are fewer than its type has */
static const char mlo_key_bits[] = "mlo.bits";
/* a kernel: bits of its weights, where they are fewer than 8 */
static const char mlo_key_weight_bits[] = "mlo.weight_bits";
/* a kernel: a step of its result, for each iteration */
static const char mlo_key_scale[] = "mlo.scale";
/* a kernel: its multipliers are powers of two: hardware without multipliers */
static const char mlo_key_pow2[] = "mlo.pow2";
/* a kernel: into how many parts a Split deals its result */
static const char mlo_key_parts[] = "mlo.parts";
/* a kernel: its name: mvu_0 */
static const char mlo_key_kernel[] = "mlo.kernel";
/* a node around the loop: where it runs: pre, core, post, or constant */
static const char mlo_key_part[] = "mlo.part";
/* a node that makes words of an input: rows of the table that the input is an index of */
static const char mlo_key_rows[] = "mlo.rows";
/* a Scan: it is the one that becomes hardware */
static const char mlo_key_core[] = "mlo.core";
/* a kernel: folding: lanes out */
static const char mlo_key_pe[] = "mlo.pe";
/* a kernel: folding: lanes in */
static const char mlo_key_simd[] = "mlo.simd";
/* a kernel: where its parameters are: layer, resident, block */
static const char mlo_key_memory[] = "mlo.memory";
/* a kernel: tokens that a block of rows is read for */
static const char mlo_key_tile[] = "mlo.tile";
/* a Scan: frames in flight */
static const char mlo_key_frames[] = "mlo.frames";
/* a Scan: sequences whose keys and values its hardware keeps; none: it keeps no more than a frame's */
static const char mlo_key_slots[] = "mlo.slots";
/* a Scan: those lie in memory: 1; on chip: none */
static const char mlo_key_kv_dram[] = "mlo.kv_dram";
/* a Scan: bits of the memory bus */
static const char mlo_key_axi_width[] = "mlo.axi_width";
/* a Scan: cycles of a read, as it was folded for */
static const char mlo_key_axi_latency[] = "mlo.axi_latency";
/* a Scan: bytes a cycle, as it was folded for */
static const char mlo_key_bandwidth[] = "mlo.bandwidth";
/* a kernel: tokens that the FIFO in front of input k holds: mlo.fifo.K */
static const char mlo_key_fifo[] = "mlo.fifo";
/* a Scan: the FPGA it was folded for */
static const char mlo_key_device[] = "mlo.device";
/* a Scan: it runs once, and its state leaves as another (head.c) */
static const char mlo_key_head[] = "mlo.head";
/* a node that makes of ids what enters the loop: hardware, but no kernel (head.c) */
static const char mlo_key_front[] = "mlo.front";
