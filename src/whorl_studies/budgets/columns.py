"""The tables of the budgets study, and what their columns mean."""

from whorl.study.columns import BETA, DEPTH, TASKS, TRIAL, described

POPULATION = "population | key | string | | networks: structural, or beta_ and the imbalance\n"
RESPONSE = "response | key | string | | selected: one sample; joint: all six\n"
SETTING = "setting | key | string | | selected, joint or wide: which samples an update is shown\n"
LAW = "law | key | string | | boundary law\n"
GAIN = "gain | key | float64 | | norm of the law\n"
UPDATES = "updates | key | int64 | | updates made\n"
TROUBLE = """\
trouble | key | string | | what spoils the law: none, error, late, noise or flips
level | key | float64 | | how much: share, updates, size or probability
"""
COMPARED = """\
advantage | derived | float64 | | mean over trials of log10 of the rival's loss over the law's
lower | derived | float64 | | lower end of its 95 % trial-bootstrap interval
upper | derived | float64 | | its upper end
share | derived | float64 | | share of trials in which the law ends lower
"""
COLUMNS = described(f"""
tasks
{TRIAL}{TASKS}
spectra
{POPULATION}{DEPTH}{RESPONSE}{TRIAL}
mode | key | int64 | | number of the mode, strongest first
eigenvalue | computed | float64 | Eq. 12 | of K
bounds
{POPULATION}{DEPTH}{RESPONSE}{TRIAL}
rank | derived | int64 | | modes above the tolerance: the identifiable ones, n
weakest | derived | float64 | | smallest of their eigenvalues: the bound of symmetric laws of norm one
geometric | derived | float64 | | their geometric mean: the bound of all laws of norm one
arithmetic | derived | float64 | | their mean: the bound where a skew part of the loop is free
random | computed | float64 | | rate of a random rotation
diagonal | computed | float64 | | largest distance of the triangle's diagonal from the geometric mean, \
over it
below | computed | float64 | | largest entry below the triangle, over the geometric mean
gyration | computed | float64 | | largest distance of a gyrating loop's real parts from the mean, over it
frozen
{LAW}{POPULATION}{DEPTH}{RESPONSE}{TRIAL}
rate | computed | float64 | | smallest real part of an eigenvalue of the loop
gain | computed | float64 | | norm of the law
transient | computed | float64 | | largest growth of an error
worst_3 | computed | float64 | | time after which no error exceeds 1e-3 of its first size
worst_6 | computed | float64 | | the same for 1e-6
mean_3 | computed | float64 | | time after which the root mean square over first errors is 1e-3
mean_6 | computed | float64 | | the same for 1e-6
noise | computed | float64 | | trace of the stationary covariance under a residual with white noise
impulse | computed | float64 | | integral of the root mean square potential
work | computed | float64 | | integral of the mean of v K v
reach | derived | float64 | | the rate over its bound
thrift | derived | float64 | | the impulse over the least impulse of any law
learners
{SETTING}{LAW}{DEPTH}{BETA}{GAIN}{UPDATES}{TRIAL}
loss | computed | float64 | Eq. 5 | mean loss
effort | computed | float64 | | sum of step times norm of the potential
rivals
{SETTING}{LAW}
rival | key | string | | compute: direct with the law's compute; effort: direct with its effort
{DEPTH}{BETA}{GAIN}{UPDATES}{TRIAL}
loss | computed | float64 | Eq. 5 | mean loss of the rival
troubled
{SETTING}{LAW}{TROUBLE}{DEPTH}{UPDATES}{TRIAL}
loss | computed | float64 | Eq. 5 | mean loss
advantages
{SETTING}{LAW}
rival | key | string | | learner that the law is compared with
{DEPTH}{BETA}{GAIN}{UPDATES}
{COMPARED}onsets
{SETTING}{LAW}{DEPTH}{BETA}{GAIN}
onset | derived | int64 | | number of updates of the design from which on the law ends below direct; -1: none
robustness
{SETTING}{LAW}{TROUBLE}{DEPTH}{UPDATES}
{COMPARED}""")
