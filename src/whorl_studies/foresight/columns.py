"""The tables of the foresight study, and what their columns mean."""

from whorl.study.columns import BETA, DEPTH, PLACE, SCALE, TASKS, TRIAL, WEIGHT, described

TRAJECTORY = "trajectory | key | int64 | | number of the trajectory\n"
UPDATE = "update | key | int64 | Appendix C | number of the update\n"
ARM = "arm | key | string | | what is chosen from, and what spoils the choice\n"
HORIZON = (
    "horizon | key | int64 | | native updates that are looked ahead; -1: to the end of the "
    "schedule\n"
)
WIDTH = "width | key | int64 | | width of the network\n"
LEARNER = (
    "learner | key | string | | reciprocal learner with equal compute: longer, finer or "
    "full_batch\n"
)
COLUMNS = described(f"""
tasks
{TRIAL}{TASKS}
weights
{TRIAL}{DEPTH}{BETA}{PLACE}{WEIGHT}
schedule
{TRIAL}{UPDATE}
sample | drawn | int64 | Appendix C | sample that is shown
foreseen | drawn | int64 | | sample that the arm with a wrong schedule expects
angle | drawn | float64 | | direction of the arm `random`, from the residual
readings
{TRIAL}{UPDATE}
action | key | int64 | | number of the action
error | drawn | float64 | | error of the loss that the noisy arms read, in units of the noise
trajectories
{TRAJECTORY}{ARM}{HORIZON}{WIDTH}{DEPTH}{BETA}{SCALE}{TRIAL}
start | computed | float64 | Eq. 5 | mean loss before the first update
final | computed | float64 | Eq. 26 | mean loss of the learner with foresight at the end
native | computed | float64 | Eq. 26 | mean loss of the native learner at the end
even | computed | float64 | Eq. C3 | what the two senses of the turns do on average, summed over \
updates
handedness | computed | float64 | Eq. C4 | what the senses that were taken add
step | computed | float64 | Eq. C5 | the cost of steps other than the native ones
drift | computed | float64 | Eq. C6 | native progress from the two states, difference
smallest | computed | float64 | Eq. 1 | smallest weight of the last states of both learners
gap | derived | float64 | Eq. 26 | final less native: above zero, native ends lower
closure | derived | float64 | Eq. 26 | distance of the four sums from the gap
departed | derived | int64 | | updates at which another action than the native step was taken
choices
{TRAJECTORY}{UPDATE}
action | computed | int64 | | number of the action that was taken: 0 is the native step
conditions
{ARM}{HORIZON}{WIDTH}{DEPTH}{BETA}{SCALE}
native | derived | float64 | Eq. 26 | mean loss of the native learner at the end
gap | derived | float64 | Eq. 26 | mean gap over trials
lower | derived | float64 | | lower end of the 95 % trial-bootstrap interval of the gap
upper | derived | float64 | | its upper end
pays | derived | int64 | | 1 where the upper end is below zero
behind | derived | int64 | | trials that end above the native learner
departed | derived | float64 | | mean share of updates with another action than the native step
even | derived | float64 | Eq. C3 | mean over trials
handedness | derived | float64 | Eq. C4 | mean over trials
step | derived | float64 | Eq. C5 | mean over trials
drift | derived | float64 | Eq. C6 | mean over trials
advantages
control | key | string | | arm that the turns are compared with
{HORIZON}{DEPTH}{BETA}{SCALE}
advantage | derived | float64 | | mean final loss of the control less that of the turns
lower | derived | float64 | | lower end of its 95 % trial-bootstrap interval
upper | derived | float64 | | its upper end
claimed | derived | int64 | | 1 where the lower end is above zero
payoff
{ARM}{DEPTH}{BETA}{SCALE}
first | derived | int64 | | first horizon of the design that pays; -2: none
onward | derived | int64 | | first horizon from which on all pay; -2: none
costs
{HORIZON}
foresight | derived | int64 | | updates of a trajectory that are made in foresight only
multiple | derived | int64 | | native updates per update with equal compute
comparators
{LEARNER}{HORIZON}{DEPTH}{BETA}{SCALE}{TRIAL}
final | computed | float64 | Eq. 5 | mean loss at the end
comparisons
{LEARNER}{HORIZON}{DEPTH}{BETA}{SCALE}
gap | derived | float64 | | mean final loss less that of the native learner
advantage | derived | float64 | | mean final loss less that of the turns: below zero, this learner \
wins
lower | derived | float64 | | lower end of the advantage's 95 % trial-bootstrap interval
upper | derived | float64 | | its upper end
share | derived | float64 | | share of trials in which this learner ends below the turns
""")
