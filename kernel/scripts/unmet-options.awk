# SPDX-License-Identifier: GPL-2.0
# awk -f unmet-options.awk FRAGMENT... CONFIG: prints options of the fragments that a configuration
# does not have. The kernel's tools do not report them: an option was renamed, or what it depends on
# is off. The last fragment counts. Being off and being unknown are the same.

/^# CONFIG_.* is not set/ { set($2, "n") }
/^CONFIG_[^=]*=/ { set(substr($0, 1, index($0, "=") - 1), substr($0, index($0, "=") + 1)) }

function set(option, value)
{
	if (FILENAME != ARGV[ARGC - 1])
		asked[option] = value
	else
		has[option] = value
}

END {
	for (option in asked) {
		is = option in has ? has[option] : "n"
		if (is != asked[option])
			print option "=" asked[option] " (is " is ")"
	}
}
