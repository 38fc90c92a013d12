# SPDX-License-Identifier: MIT
"""Sentences to judge a trained encoder by, of two kinds, 64 each, written for this. None of them is calibrated on, and none looks like those that
tests/minilm.py puts together for that: what is calibrated must hold for text of another kind."""

EVERYDAY = """The bakery on the corner closes at noon on Saturdays, so buy the bread before you pick up the kids.
Thousands of commuters were stranded on Tuesday after a signal failure halted trains across the region.
I think we should repaint the kitchen before your parents come to stay.
The mayor said the new tram line would open in spring, two years later than planned.
Can you remind me to call the dentist tomorrow morning?
A late goal in extra time sent the home side through to the semi-final.
She laughed so hard that the tea came out of her nose.
Wheat prices fell for a third week as rain returned to the southern plains.
My phone died halfway through the concert and I couldn't find anyone afterwards.
Police are asking anyone who saw a silver van near the harbour on Friday night to come forward.
It's colder than it looks, take the thick jacket.
The museum will lend forty of its paintings to a gallery in Melbourne this autumn.
We drove all night and watched the sun come up over the dunes.
Two bedrooms, a small garden, five minutes from the station; pets are welcome.
The film is twenty minutes too long, but the last scene makes up for it.
Hospitals have been told to prepare for another wave of flu this winter.
Add the onions first and let them turn golden before the garlic goes in.
He has been learning the accordion for three months and the cat has moved out.
Voters in the north go to the polls on Sunday to elect a new regional assembly.
I lost my keys again, and of course they were in the fridge.
The airline apologised for the delays and offered passengers a voucher worth fifty euros.
Our team came last in the pub quiz, though we knew every song from the eighties.
A magnitude 5.8 earthquake shook the islands early this morning; no injuries were reported.
Do you want to share a pizza, or are you really that hungry?
The river burst its banks overnight and flooded the lower half of the village.
Grandpa still writes his shopping list on the back of an envelope.
Unemployment edged down to 4.1 percent in March, the lowest figure in a decade.
The hotel was fine, but the walls were thin and our neighbours were newlyweds.
Scientists tracking the whales say that the herd has doubled since the hunting ban.
Happy birthday! I hope that you get the whole day off and far too much cake.
Striking nurses gathered outside the parliament with drums and home-made signs.
There is a spider in the bathtub and I am not going back in there.
The singer cancelled the rest of her tour, citing exhaustion.
Turn left at the petrol station, then keep going until you see the red barn.
After three seasons on the bench, the goalkeeper finally got his chance and saved two penalties.
The children built a dam in the stream and were soaked to the skin by lunch.
Firefighters from four counties battled the blaze for eleven hours.
Honestly, the instructions made less sense than the pile of screws.
The company plans to close its oldest plant and move production abroad, a union official said.
Our dog is afraid of balloons, umbrellas, and one particular lamp post.
Ticket sales for the festival open at nine on Monday and usually run out within the hour.
I dreamed I was late for an exam in a subject that I never took.
A retired postman has won the national chess title at the age of seventy-one.
Please water the tomatoes while we are away, but not the cactus.
The court heard that the couple had met at a friend's wedding in Lisbon.
Nothing beats a hot soup after a walk in the snow.
Fishermen along the coast say the herring are arriving a month earlier than they used to.
The lift is out of order again, so we carried the washing machine up six floors.
Rents in the capital have risen faster than wages for nine years in a row.
He proposed on a ferry, in the rain, with a ring made of aluminium foil.
The prime minister will meet her Canadian counterpart in Ottawa on Thursday.
Why does the bus always come the moment you light the barbecue?
Heavy snow closed the mountain pass, cutting off three villages until the weekend.
Mum says the trick is to rest the dough overnight.
The actress thanked her drama teacher, who was watching from the third row.
We ran out of milk, coffee and patience, in that order.
Shares in the carmaker jumped nine percent after it reported record sales in Asia.
The new neighbours play the trumpet, but at least they play it well.
Astronauts aboard the station spent six hours outside replacing a faulty pump.
No, I have not seen your glasses; are you wearing them?
Health officials warned swimmers to stay out of the lake until the algae are gone.
The second-hand bicycle cost thirty euros and has already lost a pedal.
Librarians in the city have voted to extend opening hours through the summer.
Good night, sleep well, and leave the window open a little.""".split("\n")

TECHNICAL = """Returns -EINVAL if the buffer is not aligned to the page size.
The absolute maximum supply voltage is 6.0 V; exceeding it may cause permanent damage to the device.
The Licensee shall indemnify and hold harmless the Licensor against any third-party claims arising from breach of Section 7.
TODO: replace this linear scan with a hash lookup once the table has more than a few hundred entries.
Typical quiescent current is 1.2 uA at 25 degrees Celsius with all outputs unloaded.
Each worker acquires the read lock, copies the snapshot pointer, and releases the lock before touching any data.
Notwithstanding the foregoing, neither party may assign this Agreement without prior written consent.
The compiler is free to reorder these stores unless a release barrier separates them.
Torque the M8 bolts to 25 Nm in a cross pattern and re-check after 100 operating hours.
error: cannot borrow `*self` as mutable because it is also borrowed as immutable
If the checksum does not match, the bootloader erases the second slot and falls back to the factory image.
The eigenvalues of a real symmetric matrix are real, and eigenvectors of distinct eigenvalues are orthogonal.
This Regulation shall enter into force on the twentieth day following that of its publication in the Official Journal.
Set CLK_DIV to 0x3F to run the UART at 9600 baud from a 10 MHz crystal.
Administer 5 mg/kg intravenously over 30 minutes; reduce the dose by half in patients with renal impairment.
git rebase --onto main feature~3 feature replays only the last three commits.
The junction-to-ambient thermal resistance is 62 K/W for the SOT-223 package on a two-layer board.
A B-tree of order m keeps every node except the root at least half full, which bounds its height by log n.
Samples were centrifuged at 12,000 g for 15 min and the supernatant was discarded.
Deprecated since version 3.2: use stream_open() with the O_NONBLOCK flag instead.
The tenant is liable for minor repairs up to a total of 200 EUR per calendar year.
Gradient clipping at a norm of 1.0 stabilised training with a batch size of 4096 and a learning rate of 3e-4.
FIFO overrun: the interrupt handler did not drain the receive queue within 128 bit times.
Let f be a continuous function on the closed interval [a, b]; then f attains its maximum.
HTTP 429 is returned when the client exceeds 60 requests per minute; honour the Retry-After header.
Data subjects have the right to obtain the erasure of personal data concerning them without undue delay.
Connect VSS of both chips to a common ground plane before applying power to VDD.
static inline uint32_t rotl(uint32_t x, int k) { return (x << k) | (x >> (32 - k)); }
The yield strength of S355 steel decreases to about sixty percent at 500 degrees.
We prove that the problem is NP-hard by a reduction from 3-SAT.
The packet is dropped silently if its TTL reaches zero or the IPv6 hop limit is exceeded.
Claims 2 to 9 depend on claim 1, wherein the valve member is biased by a helical spring.
Running VACUUM FULL takes an exclusive lock, so schedule it outside business hours.
The reaction proceeds via nucleophilic attack of the amine on the carbonyl carbon.
// Invariant: lo <= hi, and every element before lo is strictly less than the key.
Propagation delay tPLH is measured from the 50 % point of the input to the 50 % point of the output.
Any dispute arising out of this contract shall be finally settled under the Rules of Arbitration by three arbitrators.
The kernel maps the ring buffer twice, back to back, so that records never wrap.
ECC corrects single-bit errors and detects double-bit errors in each 64-bit word.
Docker build failed: COPY failed: no source files were specified
The confidence interval was estimated by bootstrapping with 10,000 resamples (p < 0.01).
For loads above 2 kN use class 10.9 fasteners and verify the bearing preload with a strain gauge.
The allocator rounds every request up to a multiple of 16 bytes and stores the size in the header.
Warranty is void if the seal is broken or the firmware has been modified by unauthorised personnel.
NullPointerException at com.example.billing.InvoiceService.total(InvoiceService.java:214)
The differential pair must be length-matched to within 0.1 mm and routed with 100 ohm impedance.
Quantization maps a real value to an 8-bit integer by a scale and a zero point.
Pursuant to Article 12(3), the controller shall respond within one month of receipt of the request.
Serum potassium above 6.5 mmol/l requires immediate treatment and continuous ECG monitoring.
A monad is a monoid in the category of endofunctors.
After reset, all GPIO pins are configured as high-impedance inputs with the pull-ups disabled.
SELECT customer_id, SUM(amount) FROM orders GROUP BY customer_id HAVING COUNT(*) > 5;
The aircraft shall not be dispatched with more than one inoperative bleed-air valve.
Cache lines are 64 bytes; padding the counters avoids false sharing between cores.
The refractive index of fused silica at 589 nm is 1.4585.
Insert the SD card with the contacts facing down, then hold BOOT for five seconds until the LED blinks amber.
This warrant of fitness expires on the date stated unless renewed by an authorised inspector.
The Fourier transform of a Gaussian is again a Gaussian, with reciprocal variance.
mutex_lock() may sleep and must therefore never be called from interrupt context.
Polymerase chain reaction was carried out for 35 cycles with annealing at 58 C.
The lessee waives any right of set-off except for claims that are undisputed or have been finally adjudicated.
Undefined behaviour: signed integer overflow in the expression i + INT_MAX.
The PLL locks within 200 us provided that the reference jitter is below 50 ps RMS.
Assertion failed: (head != NULL), function pop, file queue.c, line 88.""".split("\n")
