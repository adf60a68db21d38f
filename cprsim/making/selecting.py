"""Until `compare-systems` asks `cprsim.selector` itself."""

from cprsim.selector.question import Load as Load
from cprsim.selector.question import limit_if_any as limit_if_any
