"""The tables of the horizon study, and what their columns mean."""

from whorl.study.columns import BETA, DEPTH, PLACE, SCALE, TASKS, TERMS, TRIAL, WEIGHT, described

COLUMNS = described(f"""
tasks
{TRIAL}{TASKS}
weights
{TRIAL}{DEPTH}{BETA}{PLACE}{WEIGHT}
schedule
{TRIAL}
update | key | int64 | Appendix C | number of the update
sample | drawn | int64 | Appendix C | sample that is shown
turn | drawn | int64 | Appendix C | sense of the turn, +1 or -1
trajectories
trajectory | key | int64 | | number of the trajectory
{TRIAL}{DEPTH}{BETA}{SCALE}
policy | key | string | Sec. VII C | step-matched or adaptive
flip | key | int64 | Supplement V | 1 where all turns are reversed
start | computed | float64 | Eq. 5 | mean loss before the first update
final | derived | float64 | Eq. 26 | mean loss of the nonreciprocal learner at the end
native | derived | float64 | Eq. 26 | mean loss of the native learner at the end
gap | derived | float64 | Eq. 26 | their difference: above zero, native ends lower
{TERMS}
closure | derived | float64 | Eq. 26 | distance of the four sums from the gap
opened | derived | int64 | Eq. 27 | updates at which the gate was open
smallest | derived | float64 | Eq. 1 | smallest weight of the last states
updates
trajectory | key | int64 | | number of the trajectory
update | key | int64 | Appendix C | number of the update
taken | computed | float64 | Eq. C1 | loss after the update that was made
opposite | computed | float64 | Eq. C1 | loss after the opposite turn
still | computed | float64 | Eq. C1 | loss without a turn, same step
own | computed | float64 | Eq. C1 | loss without a turn, native step
native | computed | float64 | Eq. C1 | loss of the native learner after its update
size | computed | float64 | Appendix C | step of the nonreciprocal learner
amount | computed | float64 | Appendix C | amount of turning
{TERMS}
final_weights
trajectory | key | int64 | | number of the trajectory
{PLACE}
nonreciprocal | computed | float64 | Eq. C1 | last weight of the nonreciprocal learner
native | computed | float64 | Eq. C1 | last weight of the native learner
trials
{TRIAL}
policy | key | string | Sec. VII C | step-matched or adaptive
gap | derived | float64 | Eq. 26 | mean gap over conditions and flips
{TERMS}
conditions
{DEPTH}{BETA}{SCALE}
gap_step_matched | derived | float64 | Eq. 26 | mean gap of the step-matched policy
gap_adaptive | derived | float64 | Eq. 26 | mean gap of the adaptive policy
gain | derived | float64 | Sec. VII C | step-matched less adaptive
lower | derived | float64 | Sec. VII C | lower end of the 95 % trial-bootstrap interval of the gain
upper | derived | float64 | Sec. VII C | its upper end
draws
draw | key | int64 | Supplement V | number of the resample of trials
gap_step_matched | derived | float64 | Eq. 26 | mean gap of the step-matched policy
gap_adaptive | derived | float64 | Eq. 26 | mean gap of the adaptive policy
gain | derived | float64 | Sec. VII C | step-matched less adaptive
""")
